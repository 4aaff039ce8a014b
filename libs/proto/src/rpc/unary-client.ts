import type { DescMessage, DescService, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { Client, credentials, type MethodDefinition } from '@grpc/grpc-js';
import { type Clock, MillraceError, systemClock } from '@millrace/kernel';
import { clientOptions, type RpcOptions } from './options.ts';
import { methodDefinition } from './service-definition.ts';
import { metadataOf } from './trace-metadata.ts';
import { fromStatus } from './wire-error.ts';

/** The part of a generated service that the types here look at. */
export type Service = Omit<DescService, 'method'> & {
  readonly method: Readonly<Record<string, { methodKind: string; input: DescMessage; output: DescMessage }>>;
};

export interface CallOptions {
  /** Every call has one; the server's handler is cancelled with it. */
  readonly timeoutMs: number;
  /** W3C traceparent of the caller's span. */
  readonly parent?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

type UnaryNames<S extends Service> = {
  [K in keyof S['method']]: S['method'][K]['methodKind'] extends 'unary' ? K : never;
}[keyof S['method']];

export type UnaryCalls<S extends Service> = {
  readonly [K in UnaryNames<S>]: (
    request: MessageInitShape<S['method'][K]['input']>,
    options: CallOptions,
  ) => Promise<MessageShape<S['method'][K]['output']>>;
};

export interface UnaryClient<S extends Service> {
  readonly call: UnaryCalls<S>;
  /** Ends the connection; calls in flight fail with `rpc-unavailable`. Idempotent. */
  close(): void;
}

/**
 * A client for the unary methods of a service. Connects at the first call and again after a failure. Rejections are
 * MillraceErrors: the server's own, or `rpc-unavailable`, `rpc-deadline` (kind `retry`), `rpc-refused`, `rpc-too-large`.
 */
export function unaryClient<S extends Service>(
  service: S,
  address: string,
  options: RpcOptions & { readonly clock?: Clock } = {},
): UnaryClient<S> {
  const client = new Client(address, credentials.createInsecure(), clientOptions(options));
  const clock = options.clock ?? systemClock;
  const unary = service.methods.filter((method) => method.methodKind === 'unary');
  const call = Object.fromEntries(
    unary.map((method) => {
      const definition = methodDefinition(method);
      return [
        method.localName,
        (request: object, how: CallOptions) => callOnce(client, definition, request, { ...how, clock }),
      ];
    }),
  );
  return { call: call as unknown as UnaryCalls<S>, close: () => client.close() };
}

function callOnce(
  client: Client,
  method: MethodDefinition<object, object>,
  request: object,
  options: CallOptions & { readonly clock: Clock },
): Promise<object> {
  const { signal } = options;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(cancelled(signal));
    const onAbort = (): void => call.cancel();
    const call = client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
      metadataOf(options.parent),
      { deadline: options.clock.nowMs() + options.timeoutMs },
      (error, value) => {
        signal?.removeEventListener('abort', onAbort);
        if (error === null && value !== undefined) return resolve(value);
        if (signal?.aborted) return reject(cancelled(signal));
        reject(error === null ? new MillraceError('rpc-unavailable', 'no answer') : fromStatus(error));
      },
    );
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

function cancelled(signal: AbortSignal): MillraceError {
  const reason: unknown = signal.reason;
  if (reason instanceof MillraceError) return reason;
  return new MillraceError('cancelled', 'the caller gave the call up', { cause: reason });
}
