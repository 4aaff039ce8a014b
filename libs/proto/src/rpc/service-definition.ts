import {
  create,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import type { MethodDefinition } from '@grpc/grpc-js';

/** What grpc-js calls to put a message on the wire and to take it off. */
export interface WireCodec<T> {
  readonly serialize: (message: T) => Buffer;
  readonly deserialize: (bytes: Buffer) => T;
}

/** The generated coding of a message: takes what one can be made from. Byte fields of what it reads are views. */
export function messageCodec<D extends DescMessage>(schema: D): WireCodec<MessageInitShape<D> | MessageShape<D>> {
  return {
    serialize(message) {
      const bytes = toBinary(schema, create(schema, message as MessageInitShape<D>));
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    },
    deserialize: (bytes) => fromBinary(schema, bytes),
  };
}

/**
 * One method of a protobuf-es service as grpc-js wants it, its messages untyped: the typed faces are `unaryClient`,
 * `addUnary` and the like. `response` replaces the generated coding of the answers.
 */
export function methodDefinition<Out>(method: DescMethod, response?: WireCodec<Out>): MethodDefinition<object, object> {
  const input = messageCodec(method.input) as WireCodec<object>;
  const output = (response ?? messageCodec(method.output)) as unknown as WireCodec<object>;
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: method.methodKind === 'client_streaming' || method.methodKind === 'bidi_streaming',
    responseStream: method.methodKind === 'server_streaming' || method.methodKind === 'bidi_streaming',
    requestSerialize: input.serialize,
    requestDeserialize: input.deserialize,
    responseSerialize: output.serialize,
    responseDeserialize: output.deserialize,
  };
}
