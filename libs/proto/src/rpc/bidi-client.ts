import type { DescMessage, DescMethod, MessageInitShape } from '@bufbuild/protobuf';
import { Client, type ClientDuplexStream } from '@grpc/grpc-js';
import { clientCredentials, clientOptions, type RpcOptions } from './options.ts';
import { methodDefinition, type WireCodec } from './service-definition.ts';
import { metadataOf } from './trace-metadata.ts';

/** What a request message can be made from. */
export type InitOf<M extends { readonly input: DescMessage }> = MessageInitShape<M['input']>;

export interface BidiClient<In, Out> {
  /** Opens a stream on this client's connection. The caller attaches its reader at once: what nobody reads piles up. */
  open(parent?: string): ClientDuplexStream<In, Out>;
  /** Ends the connection and its streams. Idempotent. */
  close(): void;
}

/** A client for one bidirectional method, with a connection of its own. */
export function bidiClient<I extends DescMessage, Out>(
  method: DescMethod & { readonly input: I },
  response: WireCodec<Out>,
  address: string,
  options: RpcOptions = {},
): BidiClient<MessageInitShape<I>, Out> {
  const client = new Client(address, clientCredentials(options), clientOptions(options));
  const definition = methodDefinition(method, response);
  return {
    open: (parent) =>
      client.makeBidiStreamRequest(
        definition.path,
        definition.requestSerialize as (message: MessageInitShape<I>) => Buffer,
        definition.responseDeserialize as unknown as (bytes: Buffer) => Out,
        metadataOf(parent, options.token),
      ),
    close: () => client.close(),
  };
}
