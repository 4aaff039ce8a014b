import { expect, it } from 'vitest';
import { Epoch } from './epoch.ts';
import { WorkPool, WorkQueue } from './work.ts';

it('a pool keeps at most its size, and no record', () => {
  const pool = new WorkPool<string, object>(2);
  const epoch = new Epoch();
  const nodes = [1, 2, 3].map((n) => pool.take('a', { n }, epoch));
  for (const node of nodes) pool.give(node);
  expect(nodes.map((node) => node.record)).toEqual([undefined, undefined, { n: 3 }]);
  const again = [1, 2, 3].map(() => pool.take('b', {}, epoch));
  expect(again.slice(0, 2)).toEqual(expect.arrayContaining([nodes[0], nodes[1]]));
  expect(again[2]).not.toBe(nodes[2]);
});

it('a queue gives what it got, in order, also after it was empty or cleared', () => {
  const queue = new WorkQueue<string, number>();
  const pool = new WorkPool<string, number>(10);
  const push = (n: number): void => queue.push(pool.take('a', n, new Epoch()));
  push(1);
  expect([queue.shift()?.record, queue.shift(), queue.empty]).toEqual([1, undefined, true]);
  push(2);
  push(3);
  expect(queue.shift()?.record).toBe(2);
  queue.clear();
  push(4);
  expect([queue.shift()?.record, queue.empty]).toEqual([4, true]);
});
