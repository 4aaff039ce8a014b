import { expect, test } from 'vitest';
import { simulateAll } from './seeds.ts';
import type { Life } from './simulation.ts';

/** Writers that are held up for longer than the grace period and several attempts, while versions of the record go at once. */
const life: Life = {
  weather: { faultChance: 0.02, stallChance: 0.06, stallMs: 900 },
  attempts: 5,
  attemptMs: 250,
  sweepers: 2,
  sweepMs: 30,
  graceMs: 60,
  forks: 0,
  deletions: 0,
};

test('writers that stall beyond every collection lose no money, no file, and leave nothing', async () => {
  expect(
    await simulateAll(life, ['registered', 'aborted', 'fenced', 'crashed', 'checked', 'swept', 'collected'], 60),
  ).toEqual([]);
});
