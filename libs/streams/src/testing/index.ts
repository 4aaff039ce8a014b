export { MemoryStateStore } from '@millrace/state';
export { type ClusterCheckpoint, LocalCluster, type LocalClusterOptions } from './local-cluster.ts';
export { MemoryOutputFiles } from './memory-output-files.ts';
export { SlowStore } from './slow-store.ts';
export {
  type AttemptOptions,
  type OutputHandle,
  type SourceHandle,
  TestJob,
  type TestJobCheckpoint,
  type TestJobOptions,
  testJob,
} from './test-job.ts';
export type { Emitted } from './test-outputs.ts';
export { type TestCheckpoint, TestRun, type TestRunOptions } from './test-run.ts';
export type { TestWatermarks } from './test-source.ts';
