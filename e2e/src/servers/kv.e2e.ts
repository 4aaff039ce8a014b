/** The flights job with its state in shards of state-services that are processes of their own. */
import { existsSync, readdirSync } from 'node:fs';
import type { JobHandle } from '@millrace/client';
import { expect, test } from 'vitest';
import { expectExactFlights } from '../support/flights-result.ts';
import { eventually, registeredRounds, TestStack } from '../support/test-stack.ts';

const rows = 300_000;

/** Kills one process after a checkpoint of the running attempt, and waits for the next attempt. */
async function killAndRecover(run: TestStack, job: JobHandle, name: string): Promise<void> {
  const before = await eventually('a checkpoint of the attempt', 120_000, async () => {
    const status = await job.status();
    return status.state === 'running' && (await registeredRounds(job)).length > 0 ? status : undefined;
  });
  run.kill(name);
  await eventually(`a new attempt after ${name} was killed`, 120_000, async () => {
    const status = await job.status();
    return status.state === 'running' && status.generation > before.generation ? true : undefined;
  });
}

/** Snapshots that lie in a state-service's directory. */
function snapshotsOf(run: TestStack, service: string): string[] {
  const jobs = run.path(`data/${service}/kv/jobs/flights`);
  if (!existsSync(jobs)) return [];
  return readdirSync(jobs).flatMap((operator) => {
    const directory = `${jobs}/${operator}/snapshots`;
    return existsSync(directory) ? readdirSync(directory).filter((name) => !name.endsWith('.partial')) : [];
  });
}

test('kill -9 of a runner and of each state-service changes nothing in the result, and old snapshots are let go', async () => {
  await using run = await TestStack.start({ runners: 2, slots: 1, stateBackend: 'kv', stateServices: 2 });
  const output = run.path('out');
  const job = await run.client.startJob({
    job: 'flights',
    parallelism: 2,
    checkpointIntervalMs: 1000,
    checkpointsRetained: 2,
    options: { output, rows, recordsPerSecond: 20_000 },
  });
  for (const name of ['state-service-1', 'task-runner-1', 'state-service-2']) await killAndRecover(run, job, name);
  const end = await job.result();
  expect(end).toMatchObject({ state: 'finished' });
  expect(end.generation).toBeGreaterThanOrEqual(4);
  await expectExactFlights(output, rows);

  // Both hold state. Of each of two operators and two slots: two checkpoints, and perhaps a round that failed just now.
  for (const service of ['state-service-1', 'state-service-2']) {
    await eventually(`few snapshots at ${service}`, 120_000, () => {
      const { length } = snapshotsOf(run, service);
      return length > 0 && length <= 2 * 2 * 3 ? true : undefined;
    });
  }
});
