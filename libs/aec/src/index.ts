export { AsyncExecutionController } from './controller.ts';
export type { Advance, Epoch } from './epoch.ts';
export { type AecOptions, defaultInFlightLimit, defaultWatermarksWaitingMax } from './options.ts';
export { afterMicrotasks, RequestBatcher, type RequestBatcherOptions } from './request-batcher.ts';
export { type TimeoutOptions, withTimeout } from './with-timeout.ts';
