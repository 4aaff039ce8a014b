import type { ManualClock } from './manual-clock.ts';

/**
 * Runs `work` under simulated time: lets everything run that can, then moves the clock to the next timer, until `work`
 * settles. Work that waits for nothing but this clock is deterministic and takes no real time. Rejects when nothing
 * can run any more.
 */
export async function drive<T>(clock: ManualClock, work: Promise<T>): Promise<T> {
  let settled = false;
  const settle = (): void => {
    settled = true;
  };
  work.then(settle, settle);
  for (;;) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (settled) return await work;
    if (!clock.advanceToNext()) throw new Error('deadlock: the work waits and no timer is pending');
  }
}
