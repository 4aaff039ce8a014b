/** A backend that is not Millrace's own, on a real Redis: the conformance suite, and a job. */

import { systemRandom as random } from '@millrace/kernel';
import type { StateStore } from '@millrace/state';
import { type OpenStateStore, stateStoreConformance } from '@millrace/state/testing';
import { serveStore } from '@millrace/state-service/testing';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import { createStateBackend } from '@millrace-examples/backend-redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectExactFlights } from '../support/flights-result.ts';
import { redisServer } from '../support/redis/binary.ts';
import { RedisServer } from '../support/redis/server.ts';
import { eventually, registeredRounds, TestStack } from '../support/test-stack.ts';

const program = redisServer();
const reason = program === undefined ? ' (no redis-server on the PATH, and none to be had by apt)' : '';

describe.skipIf(program === undefined)(`Redis${reason}`, () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await RedisServer.start(program as NonNullable<typeof program>);
  });
  afterAll(() => redis[Symbol.asyncDispose]());

  /** Each fixture has the keys under a prefix to itself. */
  function fixture(remote: boolean): OpenStateStore {
    return async (clock) => {
      const options = { url: redis.url, prefix: `${random.hex(8)}:` };
      const opened: { close(): Promise<void> }[] = [];
      const another = async (): Promise<StateStore> => {
        const store = await createStateBackend({ directory: '', options, clock, random, telemetry });
        const served = remote ? await serveStore(store) : undefined;
        opened.push(served ?? store);
        return served?.client ?? store;
      };
      return {
        store: await another(),
        another,
        generationsInHome: true,
        close: async () => void (await Promise.all(opened.map((one) => one.close()))),
      };
    };
  }

  stateStoreConformance('redis', fixture(false));
  stateStoreConformance('redis over gRPC', fixture(true));

  test('the flights job with its state in Redis is exact under kill -9 of the state-service and of a runner', async () => {
    await using run = await TestStack.start({
      runners: 2,
      slots: 1,
      stateBackend: './examples/backend-redis',
      env: { MILLRACE_STATE_SERVICE_BACKEND_OPTIONS: JSON.stringify({ url: redis.url }) },
    });
    const output = run.path('out');
    const rows = 100_000;
    const job = await run.client.startJob({
      job: 'flights',
      parallelism: 2,
      checkpointIntervalMs: 1000,
      options: { output, rows, recordsPerSecond: 5000 },
    });
    for (const [generation, name] of [[0, 'state-service-1'] as const, [1, 'task-runner-1'] as const]) {
      await eventually(`a checkpoint before ${name} is killed`, 240_000, async () => {
        const status = await job.status();
        const isRunning = status.state === 'running' && status.generation > generation;
        return isRunning && (await registeredRounds(job)).length > 0 ? true : undefined;
      });
      run.kill(name);
    }
    const end = await job.result();
    expect(end).toMatchObject({ state: 'finished' });
    expect(end.generation).toBeGreaterThanOrEqual(3);
    await expectExactFlights(output, rows);
  });
});
