import { type ChannelCredentials, type ChannelOptions, credentials } from '@grpc/grpc-js';

export interface RpcOptions {
  /** Largest message taken or sent, bytes. */
  readonly messageBytesMax?: number;
  /** HTTP/2 flow-control window of what this client receives, bytes. Only the client can size it. */
  readonly windowBytes?: number;
  /** A silent peer is asked after this time … */
  readonly keepaliveTimeMs?: number;
  /** … and taken for dead when it has not answered after this much more. */
  readonly keepaliveTimeoutMs?: number;
  /** The client encrypts, and takes only servers whose certificate these authorities (PEM) have signed. */
  readonly tlsCa?: Uint8Array | undefined;
  /** The client shows it with every call. */
  readonly token?: string | undefined;
}

export const messageBytesMaxDefault = 32 * 1024 * 1024;

function common(options: RpcOptions): ChannelOptions {
  const limit = options.messageBytesMax ?? messageBytesMaxDefault;
  return {
    'grpc.max_receive_message_length': limit,
    'grpc.max_send_message_length': limit,
    // Off by default in grpc-js: without it a frozen peer is never noticed.
    'grpc.keepalive_time_ms': options.keepaliveTimeMs ?? 1000,
    'grpc.keepalive_timeout_ms': options.keepaliveTimeoutMs ?? 1000,
  };
}

/** No retries inside gRPC (its retry buffer grows, and callers decide what is idempotent); own connections per client. */
export function clientOptions(options: RpcOptions = {}): ChannelOptions {
  return {
    ...common(options),
    'grpc.enable_retries': 0,
    'grpc.use_local_subchannel_pool': 1,
    'grpc.initial_reconnect_backoff_ms': 100,
    'grpc.min_reconnect_backoff_ms': 100,
    'grpc.max_reconnect_backoff_ms': 1000,
    ...(options.windowBytes === undefined ? {} : { 'grpc-node.flow_control_window': options.windowBytes }),
  };
}

export function serverOptions(options: RpcOptions = {}): ChannelOptions {
  return common(options);
}

export function clientCredentials({ tlsCa }: RpcOptions): ChannelCredentials {
  return tlsCa === undefined ? credentials.createInsecure() : credentials.createSsl(Buffer.from(tlsCa));
}
