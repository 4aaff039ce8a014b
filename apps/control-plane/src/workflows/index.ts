export { attempt } from './attempt.ts';
export { checkpointLoop } from './checkpoint-loop.ts';
export { checkpointRound } from './checkpoint-round.ts';
export { job } from './job.ts';
export { checkpoints, deleteJob, fork, release, rescale, restore, savepoint, stop, ttlCleanup } from './operations.ts';
