export { MemoryStateStore } from '@millrace/state';
export { type ClusterCheckpoint, LocalCluster, type LocalClusterOptions } from './local-cluster.ts';
export { MemoryOutputFiles } from './memory-output-files.ts';
export { SlowStore } from './slow-store.ts';
export { type TestCheckpoint, TestRun, type TestRunOptions } from './test-run.ts';
