import { describe, expect, it } from 'vitest';
import { AsyncExecutionController } from './controller.ts';
import { RequestBatcher, type RequestBatcherOptions } from './request-batcher.ts';

/** Collects batches and lets the test decide when the tick ends and what is answered. */
function rig(options: Partial<RequestBatcherOptions<string, string>> = {}) {
  const batches: string[][] = [];
  const answers: PromiseWithResolvers<readonly string[]>[] = [];
  let endOfTick: (() => void) | undefined;
  const batcher = new RequestBatcher<string, string>({
    execute(batch) {
      batches.push([...batch]);
      const deferred = Promise.withResolvers<readonly string[]>();
      answers.push(deferred);
      return deferred.promise;
    },
    schedule: (flush) => (endOfTick = flush),
    ...options,
  });
  const tick = (): void => {
    const flush = endOfTick;
    endOfTick = undefined;
    flush?.();
  };
  return { batcher, batches, answers, tick };
}

describe('requests of one tick', () => {
  it('leave as one batch and get their own answers', async () => {
    const { batcher, batches, answers, tick } = rig();
    const results = Promise.all(['a', 'b', 'c'].map((key) => batcher.request(key)));
    expect([batches, batcher.pending]).toEqual([[], 3]);
    tick();
    expect(batches).toEqual([['a', 'b', 'c']]);
    answers[0]?.resolve(['A', 'B', 'C']);
    expect(await results).toEqual(['A', 'B', 'C']);
    expect(batcher.pending).toBe(0);
  });

  it('leave earlier when the count is reached', () => {
    const { batcher, batches, tick } = rig({ countMax: 2 });
    for (const key of ['a', 'b', 'c']) void batcher.request(key);
    expect(batches).toEqual([['a', 'b']]);
    tick();
    expect(batches).toEqual([['a', 'b'], ['c']]);
  });

  it('leave earlier when one more would exceed the bytes; a larger one goes alone', () => {
    const { batcher, batches, tick } = rig({ sizeBytesMax: 4, sizeOf: (request) => request.length });
    for (const key of ['aa', 'bb', 'c', 'too large', 'd']) void batcher.request(key);
    tick();
    expect(batches).toEqual([['aa', 'bb'], ['c'], ['too large'], ['d']]);
  });

  it('may be answered at once', async () => {
    const { batcher, tick } = rig({ execute: (batch) => batch.map((key) => key.toUpperCase()) });
    const result = batcher.request('a');
    tick();
    expect(await result).toBe('A');
  });

  it('of an input run and of all callbacks of an answer leave together, however many promises lie between', async () => {
    const sizes: number[] = [];
    const batcher = new RequestBatcher<string, number>({
      execute: async (batch) => {
        sizes.push(batch.length);
        await new Promise((resolve) => setImmediate(resolve));
        return batch.map(() => 1);
      },
    });
    const wrapped = async (depth: number, key: string): Promise<number> =>
      depth === 0 ? batcher.request(key) : await wrapped(depth - 1, key);
    const aec = new AsyncExecutionController<number, number>({
      async handle(record, key) {
        await wrapped(record % 5, `get ${key}`);
        await wrapped(record % 7, `put ${key}`);
      },
    });
    for (let i = 0; i < 500; i++) void aec.admit(i, i);
    await aec.drain();
    expect(sizes).toEqual([500, 500]);
  });
});

describe('a failure', () => {
  it('of a batch rejects its requests, thrown or later; others go on', async () => {
    const boom = new Error('boom');
    const { batcher, answers, tick } = rig();
    const first = batcher.request('a');
    tick();
    const second = batcher.request('b');
    tick();
    answers[0]?.reject(boom);
    answers[1]?.resolve(['B']);
    await expect(first).rejects.toBe(boom);
    expect(await second).toBe('B');

    const thrower = rig({
      execute() {
        throw boom;
      },
    });
    const third = thrower.batcher.request('c');
    thrower.tick();
    await expect(third).rejects.toBe(boom);
  });

  it('of the whole rejects all that wait and all to come; a late answer is ignored', async () => {
    const boom = new Error('boom');
    const { batcher, batches, answers, tick } = rig();
    const out = batcher.request('a');
    tick();
    const collected = batcher.request('b');
    batcher.fail(boom);
    tick();
    answers[0]?.resolve(['A']);
    await expect(out).rejects.toBe(boom);
    await expect(collected).rejects.toBe(boom);
    await expect(batcher.request('c')).rejects.toBe(boom);
    expect([batches, batcher.pending]).toEqual([[['a']], 0]);
  });

  it('is what a batch with too few answers becomes', async () => {
    const { batcher, answers, tick } = rig();
    const both = Promise.allSettled([batcher.request('a'), batcher.request('b')]);
    tick();
    answers[0]?.resolve(['A']);
    expect((await both).map((result) => result.status)).toEqual(['rejected', 'rejected']);
  });

  it('is what a limit of nothing is', () => {
    expect(() => rig({ countMax: 0 })).toThrow(/countMax/);
    expect(() => rig({ sizeBytesMax: Number.NaN })).toThrow(/sizeBytesMax/);
  });
});
