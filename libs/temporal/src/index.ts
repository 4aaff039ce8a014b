export { KeptWorker, type KeptWorkerOptions } from './kept-worker.ts';
export { installTemporalRuntime } from './runtime.ts';
export { toFailure } from './to-failure.ts';
