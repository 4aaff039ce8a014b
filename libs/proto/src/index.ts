export * from './control.ts';
export { decodeFrame, encodeFrame, frameCodec, type RawFrame } from './frame/frame-codec.ts';
export { Health, HealthCheckResponse_ServingStatus as ServingStatus } from './gen/grpc/health/v1/health_pb.js';
export {
  type Credit,
  Exchange,
  type Frame,
  FrameSchema,
  type PullRequest,
  PullRequestSchema,
  Runner,
  type Target,
  TargetSchema,
} from './gen/millrace/v1/runner_pb.js';
export {
  StateService,
  type TableRequest,
  TableRequestSchema,
  type TableResponse,
  TableResponseSchema,
} from './gen/millrace/v1/state_pb.js';
export { type BidiClient, bidiClient, type InitOf } from './rpc/bidi-client.ts';
export { clientOptions, messageBytesMaxDefault, type RpcOptions, serverOptions } from './rpc/options.ts';
export { addReflection } from './rpc/reflection.ts';
export { addBidi, addUnary, type CallContext, endWith, type RpcTracer, type UnaryHandlers } from './rpc/serve.ts';
export { messageCodec, methodDefinition, type WireCodec } from './rpc/service-definition.ts';
export { metadataOf, parentOf, showsToken } from './rpc/trace-metadata.ts';
export {
  type CallOptions,
  type Service,
  type UnaryCalls,
  type UnaryClient,
  unaryClient,
} from './rpc/unary-client.ts';
export { errorFromWire, errorToWire, fromStatus, toStatus } from './rpc/wire-error.ts';
