import { SeededRandom } from '@millrace/kernel';
import { expect, test } from 'vitest';
import { expectExactFlights } from './support/flights-result.ts';
import { killRunners } from './support/kill-runners.ts';
import { TestStack } from './support/test-stack.ts';

const kills = 5;

test(`a runner that is killed ${kills} times at random points changes nothing in the result`, async () => {
  const seed = Number(process.env.MILLRACE_SEED ?? Math.floor(Math.random() * 2 ** 31));
  console.log(`MILLRACE_SEED=${seed}`);
  await using run = await TestStack.start({ runners: 2, slots: 1 });
  const output = run.path('out');
  const job = await run.client.startJob({
    job: 'flights',
    parallelism: 2,
    checkpointIntervalMs: 1000,
    // Slow enough that five kills and recoveries fit in.
    options: { output, recordsPerSecond: 60_000 },
  });
  await killRunners({ run, job, kills, runners: 2, random: new SeededRandom(seed) });
  const end = await job.result();
  expect(end).toMatchObject({ state: 'finished' });
  expect(end.generation).toBeGreaterThanOrEqual(kills + 1);
  await expectExactFlights(output);
});
