export { RunnerWorker } from './runner-worker.ts';
export { installTemporalRuntime } from './runtime.ts';
