import { expectedFlights } from '@millrace/examples/flights/expected';
import { flightsFile } from '@millrace/examples/flights/file';
import { SeededRandom } from '@millrace/kernel';
import { expect, test } from 'vitest';
import { differences, readPublishedRows } from './support/json-lines.ts';
import { eventually, registeredRounds, TestStack } from './support/test-stack.ts';

const kills = 5;

test(`a runner that is killed ${kills} times at random points changes nothing in the result`, async () => {
  const seed = Number(process.env.MILLRACE_SEED ?? Math.floor(Math.random() * 2 ** 31));
  console.log(`MILLRACE_SEED=${seed}`);
  const random = new SeededRandom(seed);
  await using run = await TestStack.start({ runners: 2, slots: 1 });
  const output = run.path('out');
  const job = await run.client.startJob({
    job: 'flights',
    parallelism: 2,
    checkpointIntervalMs: 1000,
    // Slow enough that five kills and recoveries fit in.
    options: { output, recordsPerSecond: 60_000 },
  });
  for (let i = 0; i < kills; i++) {
    const before = await job.status();
    await eventually('a new checkpoint', 60_000, async () => {
      const status = await job.status();
      const rounds = await registeredRounds(job);
      return status.state === 'running' && rounds.length > 0 ? true : undefined;
    });
    await new Promise((resolve) => setTimeout(resolve, 500 + random.below(3000)));
    expect((await job.status()).state).not.toBe('finished');
    run.kill(`task-runner-${1 + random.below(2)}`);
    await eventually('a new generation that runs', 60_000, async () => {
      const status = await job.status();
      return status.state === 'running' && status.generation > before.generation ? status : undefined;
    });
  }
  const end = await job.result();
  expect(end).toMatchObject({ state: 'finished' });
  expect(end.generation).toBeGreaterThanOrEqual(kills + 1);
  const expected = await expectedFlights(flightsFile);
  expect(differences(readPublishedRows(`${output}/airport-days`), expected.airportDays)).toEqual([]);
  expect(differences(readPublishedRows(`${output}/routes`), expected.routes)).toEqual([]);
});
