import { expect, test } from 'vitest';
import { simulateAll } from './seeds.ts';
import type { Life } from './simulation.ts';

/** Forks of forks, some of which die on the way, and deletions of parents and children in any order. */
const life: Life = {
  weather: { faultChance: 0.02, stallChance: 0.03, stallMs: 200 },
  attempts: 3,
  attemptMs: 250,
  sweepers: 2,
  sweepMs: 40,
  graceMs: 120,
  forks: 5,
  deletions: 3,
};

test('chains of forks need no ancestor, whatever is deleted first, and pin none for ever', async () => {
  expect(
    await simulateAll(life, ['registered', 'forked', 'forksAbandoned', 'deleted', 'swept', 'checked'], 40),
  ).toEqual([]);
});
