import { expect, test } from 'vitest';
import { Housekeeping } from './housekeeping.ts';
import { noticed, simulateAll } from './seeds.ts';
import type { Life } from './simulation.ts';
import type { World } from './world.ts';

/** Sweeps without any grace beside flushes, merges and rounds that are under way: only proof protects them. */
const life: Life = {
  weather: { faultChance: 0.04, stallChance: 0.03, stallMs: 120 },
  attempts: 4,
  attemptMs: 300,
  sweepers: 3,
  sweepMs: 12,
  graceMs: 0,
  forks: 1,
  deletions: 0,
};

test('sweeps without grace delete nothing that a merge, a round or a fork is about to need', async () => {
  expect(
    await simulateAll(
      life,
      ['registered', 'aborted', 'fenced', 'crashed', 'checked', 'swept', 'collected', 'forked'],
      60,
    ),
  ).toEqual([]);
});

test('canary: a sweep that takes the age of a file for proof is noticed', async () => {
  const saboteur = (world: World) => new Housekeeping(world).sweep('bank', { graceMs: 0, isOver: true });
  expect(await noticed({ ...life, saboteur })).not.toEqual([]);
});
