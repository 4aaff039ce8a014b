import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildGraph } from '@millrace/streams';
import { TestRun } from '@millrace/streams/testing';
import { expect, onTestFinished, test } from 'vitest';
import { readOutput } from '../read-output.ts';
import hello from './hello.ts';

test('every order is counted in one minute of its customer, across a crash and a restart with more slots', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'hello-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const graph = buildGraph(hello, { output: directory, orders: 1000 });

  const first = await TestRun.start(graph, { parallelism: 2 });
  await first.step(3, 100); // three polls of each source, at most 100 records each
  const checkpoint = await first.checkpoint();
  await first.complete(checkpoint); // registered: the sink publishes
  await first.step(2, 100); // lost in the crash, and read again
  await first.close();

  const second = await TestRun.start(graph, { parallelism: 3, generation: 2, restore: checkpoint });
  await second.finish();

  const lines = (await readOutput(directory)).map((line) => JSON.parse(line) as { orders: number; minute: string });
  expect(lines.reduce((sum, line) => sum + line.orders, 0)).toBe(1000);
  expect(lines).toHaveLength(7 * Math.ceil(1000 / 60));
  expect(lines).toContainEqual({ customer: 'c0', minute: '1970-01-01T00:00:00.000Z', orders: 9, cents: 1102 });
});
