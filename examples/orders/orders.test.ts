import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildGraph } from '@millrace/streams';
import { type ClusterCheckpoint, LocalCluster, MemoryStateStore, TestRun } from '@millrace/streams/testing';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { readOutput } from '../read-output.ts';
import { expectedDeliveries } from './expected.ts';
import orders from './orders.ts';

let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'orders-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

it('delivers every order with each of its shipments once, across a restart at another parallelism', async () => {
  const count = 3000;
  const graph = buildGraph(orders, { output: directory, orders: count });
  const first = await TestRun.start(graph, { parallelism: 2 });
  await first.step(8, 100);
  const restore = await first.checkpoint();
  await first.complete(restore);
  await first.step(3, 100);
  await first.close();
  const second = await TestRun.start(graph, { parallelism: 3, generation: 2, restore });
  await second.finish();
  const expected = expectedDeliveries(count);
  expect(expected.length).toBeGreaterThan(1000);
  expect(await readOutput(directory)).toEqual(expected);
});

it('does so in the real slots, with kills between checkpoints', async () => {
  const count = 5000;
  const graph = () => buildGraph(orders, { output: directory, orders: count, recordsPerSecond: 10_000 });
  const store = new MemoryStateStore();
  let from: ClusterCheckpoint | undefined;
  for (const [attempt, parallelism] of [2, 3, 1].entries()) {
    const cluster = await LocalCluster.start({
      graph,
      store,
      parallelism,
      job: 'orders',
      generation: attempt + 1,
      from,
    });
    await new Promise((resolve) => setTimeout(resolve, 200));
    from = await cluster.checkpoint();
    // The second attempt dies before it hears that its round was registered.
    if (attempt !== 1) await cluster.complete(from);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await cluster.kill();
    await cluster.done.catch(() => undefined);
  }
  const last = await LocalCluster.start({ graph, store, parallelism: 2, job: 'orders', generation: 9, from });
  await last.finish();
  expect(await readOutput(directory)).toEqual(expectedDeliveries(count));
});
