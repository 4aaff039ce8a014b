import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildGraph } from '@millrace/streams';
import { TestRun } from '@millrace/streams/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readOutput } from '../read-output.ts';
import { centsPerUnit, orderOf, paymentOf } from './events.ts';
import shop, { type Customer } from './shop.ts';

const count = 1200;
const orders = Array.from({ length: count }, (_, id) => orderOf(id));
const centsOf = await Promise.all(orders.map(async (one) => one.amount * (await centsPerUnit(one.currency))));
let directory = '';

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'shop-'));
  const graph = buildGraph(shop, { output: directory, orders: count });
  const first = await TestRun.start(graph, { parallelism: 2 });
  await first.step(4, 50);
  const restore = await first.checkpoint();
  await first.complete(restore);
  await first.step(1, 50);
  await first.close();
  const second = await TestRun.start(graph, { parallelism: 3, generation: 2, restore });
  await second.finish();
});
afterAll(() => rm(directory, { recursive: true, force: true }));

async function output<T>(name: string): Promise<T[]> {
  // A sink without records makes no directory.
  if (!existsSync(join(directory, name))) return [];
  return (await readOutput(join(directory, name))).map((line) => JSON.parse(line) as T);
}

const sorted = (values: readonly unknown[]): string[] => values.map((one) => JSON.stringify(one)).sort();

it('keeps a running total of each customer', async () => {
  const lines = await output<Customer>('customers');
  expect(lines).toHaveLength(count);
  for (const customer of new Set(orders.map((one) => one.customer))) {
    const expected = { customer, orders: 0, cents: 0, largest: 0, euros: 0 };
    for (const one of orders) {
      if (one.customer !== customer) continue;
      const cents = centsOf[one.id] as number;
      expected.orders += 1;
      expected.cents += cents;
      expected.largest = Math.max(expected.largest, cents);
      if (one.currency === 'EUR') expected.euros += one.amount;
    }
    const last = lines.filter((line) => line.customer === customer).sort((a, b) => b.orders - a.orders)[0];
    expect(last).toEqual(expected);
  }
});

it('reminds of orders that were not paid within ten minutes', async () => {
  const unpaid = orders
    .filter((one) => paymentOf(one.id).paidMs > one.placedMs + 600_000)
    .map((one) => ({ order: one.id, customer: one.customer }));
  expect(unpaid.length).toBeGreaterThan(0);
  expect(sorted(await output('reminders'))).toEqual(sorted(unpaid));
});

it('puts large orders to the side', async () => {
  const large = orders.filter((one) => (centsOf[one.id] as number) > 9_000);
  expect(large.length).toBeGreaterThan(0);
  expect(sorted(await output('large'))).toEqual(sorted(large));
});

it('pairs orders with payments of the next ten minutes', async () => {
  const pairs = orders
    .map((one) => ({ order: one.id, waitedMs: paymentOf(one.id).paidMs - one.placedMs }))
    .filter(({ waitedMs }) => waitedMs <= 600_000);
  expect(pairs.length).toBeLessThan(count);
  expect(sorted(await output('paid'))).toEqual(sorted(pairs));
});

it('sums each hour and currency once; nothing is late', async () => {
  const sums = await output<{ amount: number }>('hourly');
  expect(sums.reduce((sum, one) => sum + one.amount, 0)).toBe(orders.reduce((sum, one) => sum + one.amount, 0));
  expect(await output('late')).toEqual([]);
});

it('lists the orders of each visit: a customer’s orders with less than a minute between them', async () => {
  const expected = new Map<string, number[][]>();
  for (const one of orders) {
    const visits = expected.get(one.customer) ?? [];
    const last = orders[visits.at(-1)?.at(-1) ?? -1];
    if (last !== undefined && one.placedMs - last.placedMs < 60_000) visits.at(-1)?.push(one.id);
    else visits.push([one.id]);
    expected.set(one.customer, visits);
  }
  const visits = await output<{ orders: readonly number[] }>('visits');
  const inOrder = visits.map((visit) => visit.orders.toSorted((a, b) => a - b));
  expect(sorted(inOrder)).toEqual(sorted([...expected.values()].flat()));
});
