import { MemoryStateStore } from '@millrace/state';
import { expect, it } from 'vitest';
import { job } from '../api/job.ts';
import { buildGraph } from '../graph/build-graph.ts';
import { collect } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import { LocalCluster } from './local-cluster.ts';

it('finishes a job whose input has ended while its last checkpoint but one was completed', async () => {
  const seen: number[] = [];
  const short = job('short', (flow) =>
    flow
      .from(generator({ record: (i) => i, records: 10, recordsPerSecond: 1000 }), { uid: 'numbers' })
      .to(collect(seen)),
  );
  const cluster = await LocalCluster.start({ graph: () => buildGraph(short), store: new MemoryStateStore() });
  const complete = cluster.complete.bind(cluster);
  const endedAt: boolean[] = [];
  cluster.complete = async (checkpoint) => {
    endedAt.push(checkpoint.ended);
    await complete(checkpoint);
    while (!cluster.stats().every((slot) => slot.ended)) await new Promise((resolve) => setImmediate(resolve));
  };
  await cluster.finish();
  expect(endedAt).toEqual([false, true]);
  expect(seen).toHaveLength(10);
});
