/** A backend that is not Millrace's own, on a real Redis: the conformance suite, and a job. */

import { systemRandom as random } from '@millrace/kernel';
import type { StateStore } from '@millrace/state';
import { type OpenStateStore, stateStoreConformance } from '@millrace/state/testing';
import { serveStore } from '@millrace/state-service/testing';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import { createStateBackend } from '@millrace-examples/backend-redis';
import { afterAll, beforeAll, describe } from 'vitest';
import { redisServer } from '../support/redis/binary.ts';
import { RedisServer } from '../support/redis/server.ts';

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
        close: async () => void (await Promise.all(opened.map((one) => one.close()))),
      };
    };
  }

  stateStoreConformance('redis', fixture(false));
  stateStoreConformance('redis over gRPC', fixture(true));
});
