/*
 * Random jobs against one record at a time: `npm run soak -- graphs` runs many more of them, with larger inputs.
 * `MILLRACE_CASES` raises the count, `MILLRACE_SEED` replays one case.
 */
import { expect, it } from 'vitest';
import { randomSeeds } from '../testing/random-run.ts';
import { type CaseEnd, randomCase } from './check-plan.ts';

const seeds = randomSeeds(200);
async function ofSeed(seed: number): Promise<CaseEnd> {
  try {
    return await randomCase(seed, { records: 60, operators: 5 });
  } catch (error) {
    throw new Error(`MILLRACE_SEED=${seed}`, { cause: error });
  }
}

/** A case waits for timers and turns most of the time. */
const atOnce = 8;

it(`a random job publishes what one record at a time comes to (${seeds.length} jobs)`, {
  timeout: 60_000 + seeds.length * 500,
}, async () => {
  const ends: CaseEnd[] = [];
  for (let i = 0; i < seeds.length; i += atOnce) {
    const batch = seeds.slice(i, i + atOnce);
    ends.push(...(await Promise.all(batch.map(ofSeed))));
  }
  expect(ends).toHaveLength(seeds.length);
});
