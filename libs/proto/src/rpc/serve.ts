import type { DescMessage, DescMethod, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import type { Server, ServerDuplexStream, ServerUnaryCall, sendUnaryData } from '@grpc/grpc-js';
import { MillraceError } from '@millrace/kernel';
import { methodDefinition, type WireCodec } from './service-definition.ts';
import { parentOf } from './trace-metadata.ts';
import type { Service } from './unary-client.ts';
import { toStatus } from './wire-error.ts';

/** The part of `@millrace/telemetry`'s Tracer that serving needs (proto may not import telemetry). */
export interface RpcTracer {
  span<T>(
    name: string,
    options: {
      readonly parent?: string | undefined;
      readonly attributes?: Readonly<Record<string, string | number | boolean>>;
    },
    work: (span: { readonly context: string | undefined }) => Promise<T>,
  ): Promise<T>;
}

/** What a handler learns of its call besides the request. */
export interface CallContext {
  /** The server's span of this call: the parent of what the handler does. */
  readonly parent: string | undefined;
  /** Aborted when the caller went away, gave up or ran out of time. */
  readonly signal: AbortSignal;
}

export type UnaryHandlers<S extends Service> = {
  readonly [K in keyof S['method'] as S['method'][K]['methodKind'] extends 'unary' ? K : never]: (
    request: MessageShape<S['method'][K]['input']>,
    context: CallContext,
  ) => Promise<MessageInitShape<S['method'][K]['output']>>;
};

type Handler = (request: object, context: CallContext) => Promise<object>;

/** Serves the unary methods of a service; what a handler throws reaches the caller as the same MillraceError. */
export function addUnary<S extends Service>(
  server: Server,
  service: S,
  handlers: UnaryHandlers<S>,
  tracer: RpcTracer,
): void {
  const unary = service.methods.filter((method) => method.methodKind === 'unary');
  const table = handlers as unknown as Readonly<Record<string, Handler>>;
  server.addService(
    Object.fromEntries(unary.map((method) => [method.localName, methodDefinition(method)])),
    Object.fromEntries(
      unary.map((method) => [method.localName, serveUnary(method, table[method.localName] as Handler, tracer)]),
    ),
  );
}

function serveUnary(method: DescMethod, handler: Handler, tracer: RpcTracer) {
  const name = `${method.parent.name}.${method.name}`;
  const attributes = { 'rpc.system': 'grpc', 'rpc.method': name };
  return (call: ServerUnaryCall<object, object>, answer: sendUnaryData<object>): void => {
    const abort = new AbortController();
    call.once('cancelled', () => abort.abort(new MillraceError('cancelled', `the caller gave ${name} up`)));
    const work = (span: { readonly context: string | undefined }): Promise<object> =>
      handler(call.request, { parent: span.context, signal: abort.signal });
    tracer.span(name, { parent: parentOf(call.metadata), attributes }, work).then(
      (value) => answer(null, value),
      (error: unknown) => answer(toStatus(error)),
    );
  };
}

/**
 * Serves one bidirectional method. The handler owns the stream: it attaches its reader at once, honours `write() ===
 * false`, and ends it by `stream.end()` or `endWith(stream, error)`. `response` replaces the generated coding of answers.
 */
export function addBidi<I extends DescMessage, Out>(
  server: Server,
  method: DescMethod & { readonly input: I },
  response: WireCodec<Out>,
  handler: (stream: ServerDuplexStream<MessageShape<I>, Out>) => void,
): void {
  server.addService(
    { [method.localName]: methodDefinition(method, response) },
    { [method.localName]: handler as unknown as (stream: ServerDuplexStream<object, object>) => void },
  );
}

/** Ends a stream with an error that the client reads as the same MillraceError, after what was already written. */
export function endWith<In, Out>(stream: ServerDuplexStream<In, Out>, error: unknown): void {
  stream.emit('error', toStatus(error));
}
