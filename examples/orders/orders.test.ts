import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildGraph } from '@millrace/streams';
import { TestRun } from '@millrace/streams/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readOutput } from '../read-output.ts';
import { expectedDeliveries } from './expected.ts';
import orders from './orders.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'orders-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

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
