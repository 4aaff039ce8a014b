export { RunnerWorker } from './runner-worker.ts';
export { TemporalCompactions } from './temporal-compactions.ts';
