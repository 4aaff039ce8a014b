import { SeededRandom } from '@millrace/kernel';
import { expect } from 'vitest';
import { expectExactFlights } from './flights-result.ts';
import { killRunners } from './kill-runners.ts';
import { TestStack } from './test-stack.ts';

export interface FlightsOnStore {
  /** URI of the store. */
  readonly dfs: string;
  /** Of every process: credentials. */
  readonly env?: Readonly<Record<string, string>>;
  /** Called while the job runs, after the first kill of a runner. */
  readonly disturb?: () => Promise<void>;
}

const rows = 300_000;

/** Runs the flights job with all its state on a store, kills a runner and disturbs the store, and checks every line of the result. */
export async function expectExactFlightsOn({ dfs, env, disturb }: FlightsOnStore): Promise<void> {
  const seed = Number(process.env.MILLRACE_SEED ?? Math.floor(Math.random() * 2 ** 31));
  console.log(`MILLRACE_SEED=${seed}`);
  const random = new SeededRandom(seed);
  await using run = await TestStack.start({ runners: 2, slots: 1, dfs, ...(env === undefined ? {} : { env }) });
  const output = run.path('out');
  const job = await run.client.startJob({
    job: 'flights',
    parallelism: 2,
    checkpointIntervalMs: 1000,
    // Slow enough that the kills and the recoveries fit in.
    options: { output, rows, recordsPerSecond: 10_000 },
  });
  const killing = { run, job, runners: 2, random };
  expect(await killRunners({ ...killing, kills: 1 })).toBe(1);
  await disturb?.();
  expect(await killRunners({ ...killing, kills: 1 })).toBe(1);
  const end = await job.result();
  expect(end).toMatchObject({ state: 'finished' });
  expect(end.generation).toBeGreaterThanOrEqual(3);
  await expectExactFlights(output, rows);
}
