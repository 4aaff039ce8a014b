export { RunnerWorker } from './runner-worker.ts';
