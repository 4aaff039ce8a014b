import { openDfs } from '@millrace/dfs';
import { dfsConformance } from '@millrace/dfs/testing';
import { systemClock, systemRandom } from '@millrace/kernel';
import { noTelemetry } from '@millrace/telemetry';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { expectExactFlightsOn } from '../support/flights-on-store.ts';
import { HdfsCluster } from '../support/hdfs/hdfs-cluster.ts';
import { hdfsMissing } from '../support/hdfs/jars.ts';

const missing = hdfsMissing();
const shared = { clock: systemClock, random: systemRandom, telemetry: noTelemetry };

describe.skipIf(missing !== undefined)(`a real HDFS${missing === undefined ? '' : `: skipped, ${missing}`}`, () => {
  let hdfs: HdfsCluster;
  beforeAll(async () => {
    hdfs = await HdfsCluster.start({ dataNodes: 2 });
  }, 900_000);
  afterAll(() => hdfs?.[Symbol.asyncDispose]());

  let homes = 0;
  dfsConformance('HDFS', async () => {
    const dfs = await openDfs(hdfs.uri(`conformance/${homes++}`), shared);
    return { dfs, cleanup: () => dfs.close() };
  });

  test('flights with all state on HDFS give exactly the independent result, though runners and a data node are killed', async () => {
    await expectExactFlightsOn({ dfs: hdfs.uri('flights'), disturb: () => hdfs.killDataNode(1) });
  });
});
