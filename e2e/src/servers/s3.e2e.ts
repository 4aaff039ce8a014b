import { openDfs } from '@millrace/dfs';
import { dfsConformance } from '@millrace/dfs/testing';
import { systemClock, systemRandom } from '@millrace/kernel';
import { noTelemetry } from '@millrace/telemetry';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { expectExactFlightsOn } from '../support/flights-on-store.ts';
import { versitygwMissing } from '../support/versitygw/binary.ts';
import { S3Server } from '../support/versitygw/s3-server.ts';

const missing = versitygwMissing();
const shared = { clock: systemClock, random: systemRandom, telemetry: noTelemetry };

describe.skipIf(missing !== undefined)(
  `a real S3 service${missing === undefined ? '' : `: skipped, ${missing}`}`,
  () => {
    let server: S3Server;
    beforeAll(async () => {
      Object.assign(process.env, S3Server.env);
      server = await S3Server.start();
    }, 900_000);
    afterAll(() => server?.[Symbol.asyncDispose]());

    let homes = 0;
    dfsConformance('S3', async () => {
      const dfs = await openDfs(server.uri(`conformance/${homes++}`), shared);
      return { dfs, cleanup: () => dfs.close() };
    });

    test('flights with all state on S3 give exactly the independent result, though runners are killed', async () => {
      await expectExactFlightsOn({ dfs: server.uri('flights'), env: S3Server.env });
    });
  },
);
