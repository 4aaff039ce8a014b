/** The flights job with its state in a ring of three: exact, whatever is killed. */
import type { JobHandle } from '@millrace/client';
import { expect, test } from 'vitest';
import { cassandraMissing } from '../support/cassandra/jars.ts';
import { CassandraRing } from '../support/cassandra/ring.ts';
import { expectExactFlights } from '../support/flights-result.ts';
import { eventually, registeredRounds, TestStack } from '../support/test-stack.ts';

const rows = 150_000;
const missing = cassandraMissing();

/** Resolves when the running attempt has registered a checkpoint after `generation`'s. */
async function checkpointAfter(job: JobHandle, generation: number): Promise<number> {
  return eventually(`a checkpoint after generation ${generation}`, 240_000, async () => {
    const status = await job.status();
    const isRunning = status.state === 'running' && status.generation > generation;
    return isRunning && (await registeredRounds(job)).length > 0 ? status.generation : undefined;
  });
}

test.skipIf(missing !== undefined)(
  `kill -9 of a runner, of the state-service and of a node of the ring changes nothing in the result${missing ?? ''}`,
  async () => {
    await using ring = await CassandraRing.start(3);
    await using run = await TestStack.start({
      runners: 2,
      slots: 1,
      stateBackend: 'cql',
      stateServices: 1,
      env: { MILLRACE_STATE_SERVICE_BACKEND_OPTIONS: JSON.stringify(ring.backendOptions()) },
    });
    const output = run.path('out');
    const job = await run.client.startJob({
      job: 'flights',
      parallelism: 2,
      checkpointIntervalMs: 2000,
      checkpointsRetained: 2,
      options: { output, rows, recordsPerSecond: 3000 },
    });
    const first = await checkpointAfter(job, 0);
    await ring.kill(3);
    const rounds = (await registeredRounds(job)).length;
    await eventually('a checkpoint without the node', 240_000, async () => {
      return (await registeredRounds(job)).length > rounds ? true : undefined;
    });
    run.kill('task-runner-1');
    const second = await checkpointAfter(job, first);
    run.kill('state-service-1');
    await checkpointAfter(job, second);
    const end = await job.result();
    expect(end).toMatchObject({ state: 'finished' });
    expect(end.generation).toBeGreaterThanOrEqual(3);
    await expectExactFlights(output, rows);
  },
);
