export { drive } from './drive.ts';
export { ManualClock } from './manual-clock.ts';
