import { timeouts } from './timeouts.ts';

/** Time before the next attempt: the first failure restarts at once, later ones wait twice as long each. */
export function backoffMs(failures: number): number {
  if (failures <= 1) return 0;
  return Math.min(timeouts.backoffMaxMs, timeouts.backoffFirstMs * 2 ** (failures - 2));
}
