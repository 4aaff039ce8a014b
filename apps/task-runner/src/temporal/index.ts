export type { AttemptHandle, AttemptHost } from './attempt-host.ts';
export { RunnerWorker, type RunnerWorkerOptions } from './runner-worker.ts';
export { installTemporalRuntime } from './runtime.ts';
