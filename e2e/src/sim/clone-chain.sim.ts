import { expect, test } from 'vitest';
import { noticed, simulateAll } from './seeds.ts';
import type { Life } from './simulation.ts';
import type { World } from './world.ts';

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
    await simulateAll(life, ['registered', 'forked', 'forksAbandoned', 'deleted', 'swept', 'checked'], 60),
  ).toEqual([]);
});

test('canary: a pin that is lost is noticed', async () => {
  const saboteur = async ({ memory, store }: World): Promise<void> => {
    for (const job of store.jobs) {
      for await (const { path } of memory.list(`${encodeURIComponent(job)}/holders/fork-`)) await memory.remove(path);
    }
  };
  expect(await noticed({ ...life, saboteur })).not.toEqual([]);
});
