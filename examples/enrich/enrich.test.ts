import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildGraph } from '@millrace/streams';
import { TestRun } from '@millrace/streams/testing';
import { expect, onTestFinished, test } from 'vitest';
import { readOutput } from '../read-output.ts';
import enrich from './enrich.ts';

test('orders get their names, payments and discounts, across a crash and a restart with fewer slots', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'enrich-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const orders = 300;
  const graph = buildGraph(enrich, { output: directory, orders });

  const first = await TestRun.start(graph, { parallelism: 3 });
  await first.step(3, 20);
  const checkpoint = await first.checkpoint();
  await first.complete(checkpoint);
  await first.step(2, 20);
  await first.close();
  const second = await TestRun.start(graph, { parallelism: 2, generation: 2, restore: checkpoint });
  await second.finish();

  const output = async <T>(name: string): Promise<T[]> =>
    (await readOutput(join(directory, name))).map((line) => JSON.parse(line) as T);
  const names = await output<{ order: number; name: string | null }>('names');
  expect(names).toHaveLength(orders);
  expect(names).toContainEqual({ order: 0, name: null });
  expect(names).toContainEqual({ order: 1, name: 'Customer 1' });

  const table = new Set<string>();
  const changes = await output<{ op: string; value: { order: number; paidMs: number | null } }>('paid');
  for (const { op, value } of changes) if (op === 'insert') table.add(JSON.stringify(value));
  for (const { op, value } of changes) if (op === 'retract') table.delete(JSON.stringify(value));
  const paid = [...table].map((row) => JSON.parse(row) as { order: number; paidMs: number | null });
  expect(paid.toSorted((a, b) => a.order - b.order)).toEqual(
    Array.from({ length: orders }, (_, order) => ({ order, paidMs: order % 5 === 0 ? null : order * 1000 + 500 })),
  );

  const unpaid = await output<{ order: number }>('unpaid');
  expect(new Set(unpaid.map((one) => one.order))).toEqual(new Set(Array.from({ length: orders / 5 }, (_, i) => i * 5)));
  expect(await output('discounts')).toHaveLength(orders);
  expect(await output('welcome')).toHaveLength(11);
  const best = await output<{ country: string; best: number[] }>('best');
  expect(new Set(best.map((one) => one.country))).toEqual(new Set(['DE', 'FR', 'JP']));
});
