import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { testJob } from '@millrace/streams/testing';
import { expect, onTestFinished, test } from 'vitest';
import { readOutput } from '../read-output.ts';
import hello from './hello.ts';

test('a minute of a customer is told once, when it is over, across a crash and a restart with more slots', async () => {
  await using run = await testJob(hello, { parallelism: 2 });
  const orders = run.source('orders');
  const minutes = run.sink('files');

  orders.push({ customer: 'ann', cents: 500, placedMs: 1000 }, { customer: 'ann', cents: 250, placedMs: 59_999 });
  await run.checkpoint();
  orders.push({ customer: 'bob', cents: 100, placedMs: 61_000 });
  await run.settle(); // everything that was pushed has had its whole effect
  expect(minutes.records).toEqual([]); // orders may be five seconds late: the minute is still open

  await run.restart({ parallelism: 3 }); // a crash: back to the checkpoint
  orders.push({ customer: 'bob', cents: 100, placedMs: 65_001 });
  await run.settle();
  expect(minutes.records).toEqual([{ customer: 'ann', minute: '1970-01-01T00:00:00.000Z', orders: 2, cents: 750 }]);

  await run.finish(); // the input ends: every window does
  expect(minutes.records.at(-1)).toEqual({
    customer: 'bob',
    minute: '1970-01-01T00:01:00.000Z',
    orders: 2,
    cents: 200,
  });
});

test('the job as it is writes every order of its generator to its files, once', async () => {
  const output = await mkdtemp(join(tmpdir(), 'hello-'));
  onTestFinished(() => rm(output, { recursive: true, force: true }));
  await using run = await testJob(hello, { options: { output, orders: 1000 }, keep: ['orders', 'files'] });
  await run.checkpoint();
  await run.restart({ parallelism: 3 });
  await run.finish();

  const lines = (await readOutput(output)).map((line) => JSON.parse(line) as { orders: number; minute: string });
  expect(lines.reduce((sum, line) => sum + line.orders, 0)).toBe(1000);
  expect(lines).toHaveLength(7 * Math.ceil(1000 / 60));
  expect(lines).toContainEqual({ customer: 'c0', minute: '1970-01-01T00:00:00.000Z', orders: 9, cents: 1102 });
});
