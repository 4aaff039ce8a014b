export { type TestCheckpoint, TestRun, type TestRunOptions } from './test-run.ts';
