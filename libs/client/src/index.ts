export { type ConnectOptions, connectMillrace } from './connect.ts';
export type { JobHandle } from './job-handle.ts';
export type { JobSummary, MillraceClient } from './millrace-client.ts';
export type { OperationHandle } from './operation-handle.ts';
