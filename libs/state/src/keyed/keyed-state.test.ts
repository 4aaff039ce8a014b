import { isPending, SeededRandom } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { Codec } from '../codec.ts';
import { optional } from '../codecs/composed.ts';
import { msgpack } from '../codecs/msgpack.ts';
import { float64, int64, string } from '../codecs/primitives.ts';
import { struct } from '../codecs/struct.ts';
import { aggregating, list, map, reducing, type StateShape, value } from '../handles/descriptors.ts';
import type { AggregatingHandle, MapHandle, StateFacade, ValueHandle } from '../handles/handles.ts';
import { keyCodec, keyOf } from '../keys/key-codec.ts';
import { MemoryStateStore } from '../memory/memory-state-store.ts';
import type { SnapshotHandle } from '../store.ts';
import { slowStore } from '../testing/slow-store.ts';
import { specOf } from '../testing/table-driver.ts';
import type { AccessScope, KeyedState } from './ports.ts';
import { openKeyedState } from './slot-keyed-state.ts';
import { WorkingSet } from './working-set.ts';

const always: AccessScope = { open: true, enter: () => undefined, leave: () => undefined };

interface Setup {
  readonly clock?: ManualClock;
  readonly store?: MemoryStateStore;
  readonly slow?: boolean;
  readonly handles?: readonly SnapshotHandle[];
  readonly generation?: number;
  readonly bytesMax?: number;
  readonly changesMax?: number;
  readonly onFailure?: (error: unknown) => void;
}

async function opened<S extends StateShape>(
  shape: S,
  setup: Setup = {},
): Promise<{ state: KeyedState<S>; workingSet: WorkingSet }> {
  const clock = setup.clock ?? new ManualClock();
  const memory = setup.store ?? new MemoryStateStore(clock);
  const store = setup.slow === true ? slowStore(memory, new SeededRandom(1)) : memory;
  const handles = setup.handles ?? [];
  const table = await store.openTable(specOf({ generation: setup.generation ?? 1 }), handles);
  const workingSet = new WorkingSet({ bytesMax: setup.bytesMax ?? 1 << 20, clock });
  const state = await openKeyedState({
    table,
    restored: handles.length > 0,
    shape,
    workingSet,
    clock,
    changesMax: setup.changesMax,
    onFailure: setup.onFailure,
  });
  return { state, workingSet };
}

/** Runs a handler on a key, as the host does. */
async function on<S extends StateShape, R>(
  state: KeyedState<S>,
  key: unknown,
  handler: (facade: StateFacade<S>) => R | Promise<R>,
): Promise<R> {
  await state.room();
  const entry = state.enter(key);
  try {
    return await handler(state.facade(entry, always));
  } finally {
    state.leave(entry);
  }
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const out: T[] = [];
  for await (const item of items) out.push(item);
  return out;
}

describe('keyed state', () => {
  test('a handler sees the states it declared, with their types', async () => {
    const { state } = await opened({
      total: value(int64),
      perCity: map(keyOf<string>(), float64),
      mean: aggregating(
        { create: () => [0, 0], add: ([n, s], v: number) => [n! + 1, s! + v], result: ([n, s]) => s! / n! },
        msgpack<number[]>(),
      ),
    });
    const facade = state.facade(state.enter('a'), always);
    expectTypeOf(facade.total).toEqualTypeOf<ValueHandle<number>>();
    expectTypeOf(facade.perCity).toEqualTypeOf<MapHandle<string, number>>();
    expectTypeOf(facade.mean).toEqualTypeOf<AggregatingHandle<number, number>>();
    expect(Object.keys(Object.getPrototypeOf(facade) as object)).toEqual(['total', 'perCity', 'mean']);
    void facade.mean.add(2);
    void facade.mean.add(4);
    expect(facade.mean.get()).toBe(3);
  });

  test('a value at hand costs no promise', async () => {
    const { state } = await opened({ total: value(int64) }, { slow: true });
    await on(state, 'a', async ({ total }) => {
      await total.get();
      total.set(5);
      expect(total.get()).toBe(5);
      expect(total.update((n) => (n ?? 0) + 1)).toBe(6);
    });
  });

  test('keys that are equal by content share their state', async () => {
    const { state } = await opened({ total: value(int64) });
    await on(state, { a: 1, b: [2] }, ({ total }) => total.set(1));
    expect(await on(state, { b: [2], a: 1 }, ({ total }) => total.get())).toBe(1);
    await on(state, -0, ({ total }) => total.set(2));
    expect(await on(state, 0, ({ total }) => total.get())).toBe(2);
    expect(await on(state, '0', ({ total }) => total.get())).toBeUndefined();
  });

  test('namespaces keep values of one key apart', async () => {
    const { state } = await opened({ total: value(int64) });
    const windows = [undefined, 0, 60_000, [0, 60_000]];
    for (const [i, window] of windows.entries()) {
      const entry = state.enter('a', window);
      state.facade(entry, always).total.set(i);
      state.leave(entry);
    }
    await state.flush();
    for (const [i, window] of windows.entries()) {
      const entry = state.enter('a', window);
      expect(state.facade(entry, always).total.get()).toBe(i);
      state.leave(entry);
    }
  });

  test('two updates issued together are both applied', async () => {
    const { state } = await opened({ total: value(int64), sum: reducing(int64, (a, b) => a + b) }, { slow: true });
    await on(state, 'a', async ({ total, sum }) => {
      await Promise.all([total.update((n) => (n ?? 0) + 1), total.update((n) => (n ?? 0) + 1), sum.add(3), sum.add(4)]);
      expect([await total.get(), await sum.get()]).toEqual([2, 7]);
    });
  });

  test('a list that was given out does not change under its holder', async () => {
    const { state } = await opened({ items: list(string) });
    await on(state, 'a', async ({ items }) => {
      await items.addAll(['x', 'y']);
      const held = await items.get();
      await items.add('z');
      expect(held).toEqual(['x', 'y']);
      expect(await items.get()).toEqual(['x', 'y', 'z']);
    });
  });

  test('merging windows takes the other accumulator and leaves it empty', async () => {
    const count = {
      create: () => 0,
      add: (n: number) => n + 1,
      merge: (a: number, b: number) => a + b,
      result: (n: number) => n,
    };
    const { state } = await opened(
      { count: aggregating(count, int64), low: reducing(int64, Math.min) },
      { slow: true },
    );
    const [a, b] = [state.enter('k', 1), state.enter('k', 2)];
    const [one, two] = [state.facade(a, always), state.facade(b, always)];
    await one.count.add('x' as never);
    await two.count.add('y' as never);
    await two.low.add(4);
    await Promise.all([one.count.mergeFrom(two.count), one.low.mergeFrom(two.low)]);
    expect([await one.count.get(), await two.count.get(), await one.low.get(), await two.low.get()]).toEqual([
      2,
      undefined,
      4,
      undefined,
    ]);
  });

  test('map entries come in key order, newest values first at hand, and the map may change meanwhile', async () => {
    const { state } = await opened({ byTime: map(keyOf<number>(), string) }, { slow: true });
    await on(state, 'a', async ({ byTime }) => {
      for (const n of [30, -5, 10, 20]) byTime.set(n, `v${n}`);
      await state.flush();
      byTime.set(15, 'new');
      byTime.delete(20);
      byTime.set(10, 'changed');
      expect(await all(byTime.entries())).toEqual([
        [-5, 'v-5'],
        [10, 'changed'],
        [15, 'new'],
        [30, 'v30'],
      ]);
      expect(await all(byTime.keys({ from: 10, until: 30 }))).toEqual([10, 15]);
      for await (const key of byTime.keys()) byTime.delete(key);
      expect(await all(byTime.entries())).toEqual([]);
      await byTime.clear();
      byTime.set(1, 'last');
      expect(await all(byTime.entries())).toEqual([[1, 'last']]);
    });
  });

  test('a write is not undone by a read that was under way', async () => {
    const { state } = await opened({ total: value(int64), byKey: map(keyOf<string>(), int64) }, { slow: true });
    for (let key = 0; key < 20; key++) {
      await on(state, key, async ({ total, byKey }) => {
        const reads = [total.get(), byKey.get('x')];
        total.set(1);
        byKey.set('x', 2);
        await Promise.all(reads.filter(isPending));
        expect([await total.get(), await byKey.get('x')]).toEqual([1, 2]);
      });
    }
  });

  test('a map of many entries is not kept whole in memory, and goes on as before', async () => {
    const { state, workingSet } = await opened(
      { byKey: map(keyOf<number>(), int64) },
      { bytesMax: 10 << 20, slow: true },
    );
    await on(state, 'a', async ({ byKey }) => {
      await byKey.clear();
      for (let n = 0; n < 5000; n++) byKey.set(n, n);
      expect(workingSet.bytes).toBeGreaterThan(100_000);
      await state.flush();
      expect(workingSet.bytes).toBeLessThan(10_000);
      const reads = Array.from({ length: 20 }, (_, n) => byKey.get(n)).filter(isPending);
      expect((await Promise.all(reads)).length).toBeGreaterThan(0);
      expect([await byKey.get(4999), await byKey.get(5000)]).toEqual([4999, undefined]);
      byKey.delete(0);
      expect((await all(byKey.keys())).length).toBe(4999);
    });
  });

  test('a key of another subtask is refused', async () => {
    const clock = new ManualClock();
    const table = await new MemoryStateStore(clock).openTable(specOf({ keyGroups: { start: 5, end: 5 } }), []);
    const workingSet = new WorkingSet({ bytesMax: 1 << 20, clock });
    const state = await openKeyedState({ table, restored: false, shape: {}, workingSet, clock });
    const outcomes = Array.from({ length: 300 }, (_, i) => {
      try {
        return state.enter(i).keyGroup;
      } catch (error) {
        return (error as { code?: string }).code;
      }
    });
    expect(new Set(outcomes)).toEqual(new Set([5, 'invariant-broken']));
  });

  test('access after the record was finished is refused', async () => {
    const { state } = await opened({ total: value(int64), byKey: map(keyCodec, int64) }, { slow: true });
    const scope = { open: true, enter: () => undefined, leave: () => undefined };
    const { total, byKey } = state.facade(state.enter('a'), scope);
    scope.open = false;
    for (const access of [() => total.get(), () => total.set(1), () => byKey.has(1), () => byKey.entries()]) {
      expect(access).toThrow(expect.objectContaining({ code: 'state-late-access' }));
    }
  });

  test('an access that was not answered at once is counted until it is', async () => {
    const { state } = await opened({ total: value(int64), byKey: map(keyCodec, int64) }, { slow: true });
    let waiting = 0;
    const scope = { open: true, enter: () => void waiting++, leave: () => void waiting-- };
    const facade = state.facade(state.enter('a'), scope);
    const answers = [1, 2, 3, 4, 5, 6].map((n) => facade.byKey.get(n)).filter(isPending);
    expect(waiting).toBe(answers.length);
    expect(waiting).toBeGreaterThan(0);
    await Promise.all(answers);
    expect(waiting).toBe(0);
  });

  test('a value that its codec cannot write is reported with state and key', async () => {
    const { state } = await opened({ user: value(struct({ age: int64 })) });
    await on(state, 'Ada', ({ user }) => user.set({ age: 0.5 }));
    expect(() => state.flush()).toThrow(/state user, key Ada: field age: int64 cannot write 0.5/);
  });
});

describe('working set', () => {
  test('stays within its bytes, writes what it gives up, and keeps what records use', async () => {
    const { state, workingSet } = await opened({ text: value(string) }, { bytesMax: 20_000 });
    const pinned = state.enter('pinned');
    state.facade(pinned, always).text.set('held');
    for (let i = 0; i < 1000; i++) {
      await on(state, i, ({ text }) => text.set(`value ${i}`));
      expect(workingSet.bytes).toBeLessThan(21_000);
    }
    expect(workingSet.evictions).toBeGreaterThan(500);
    expect(state.enter('pinned')).toBe(pinned);
    for (let i = 0; i < 1000; i++) expect(await on(state, i, ({ text }) => text.get())).toBe(`value ${i}`);
  });

  test('writes of one key between two write-behinds become one', async () => {
    const clock = new ManualClock();
    const store = new MemoryStateStore(clock);
    const table = await store.openTable(specOf(), []);
    let entries = 0;
    const counting = Object.assign(Object.create(table) as typeof table, {
      spec: table.spec,
      peek: table.peek.bind(table),
      write: (batch: Parameters<typeof table.write>[0]) => {
        entries += batch.count;
        return table.write(batch);
      },
    });
    const state = await openKeyedState({
      table: counting,
      restored: false,
      shape: { n: value(int64) },
      workingSet: new WorkingSet({ bytesMax: 1 << 20, clock }),
      clock,
    });
    await state.flush();
    entries = 0;
    for (let i = 0; i < 100; i++) await on(state, 'hot', ({ n }) => n.update((old) => (old ?? 0) + 1));
    await state.flush();
    expect(entries).toBe(1);
  });

  test('is shared: one operator makes room for another', async () => {
    const clock = new ManualClock();
    const store = new MemoryStateStore(clock);
    const workingSet = new WorkingSet({ bytesMax: 10_000, clock });
    const states = await Promise.all(
      ['one', 'two'].map(async (operator) => {
        const table = await store.openTable(specOf({ operator }), []);
        return openKeyedState({ table, restored: false, shape: { n: value(int64) }, workingSet, clock });
      }),
    );
    for (let i = 0; i < 200; i++) await on(states[i < 100 ? 0 : 1]!, i, ({ n }) => n.set(i));
    expect(workingSet.bytes).toBeLessThanOrEqual(10_000);
    expect(await on(states[0]!, 5, ({ n }) => n.get())).toBe(5);
    await states[0]!.close();
    await states[1]!.close();
    expect([workingSet.size, workingSet.bytes]).toEqual([0, 0]);
  });
});

describe('a new version of a job', () => {
  const first = {
    user: value(struct({ name: string, age: int64 })),
    seen: value(int64),
    tags: map(keyOf<string>(), int64),
  };

  async function saved(): Promise<SnapshotHandle> {
    const { state } = await opened(first);
    await on(state, 'a', ({ user, seen, tags }) => {
      user.set({ name: 'Ada', age: 36 });
      seen.set(7);
      tags.set('x', 1);
    });
    return state.snapshot(1);
  }

  test('reads state of the old one after fields and states came, went and moved', async () => {
    const shape = {
      fresh: value(string),
      tags: map(keyOf<string>(), float64),
      user: value(struct({ mail: optional(string), name: string })),
    };
    const { state } = await opened(shape, { handles: [await saved()], generation: 2 });
    await on(state, 'a', async ({ user, tags, fresh }) => {
      expect(await user.get()).toEqual({ mail: undefined, name: 'Ada' });
      expect(await all(tags.entries())).toEqual([['x', 1]]);
      expect(await fresh.get()).toBeUndefined();
      fresh.set('f');
      user.set({ mail: 'm', name: 'Ada' });
      tags.set('y', 0.5);
    });
    const handle = await state.snapshot(2);

    // And the version after that: the state dropped in between is still there, and both formats are readable.
    const third = { ...shape, seen: value(int64), user: value(struct({ name: optional(string) })) };
    const { state: next } = await opened(third, { handles: [handle], generation: 3 });
    await on(next, 'a', async ({ seen, user, tags, fresh }) => {
      expect([await seen.get(), await user.get(), await fresh.get()]).toEqual([7, { name: 'Ada' }, 'f']);
      expect(await all(tags.entries())).toEqual([
        ['x', 1],
        ['y', 0.5],
      ]);
    });
  });

  test.each([
    [
      'a field changed its type',
      { user: value(struct({ name: int64, age: int64 })) },
      { state: 'user', field: 'name' },
    ],
    [
      'a required field is new',
      { user: value(struct({ name: string, age: int64, id: int64 })) },
      { state: 'user', field: 'id' },
    ],
    ['a state changed its kind', { seen: list(int64) }, { state: 'seen' }],
    ['map keys changed their codec', { tags: map(int64, int64) }, { state: 'tags' }],
  ])('is refused before it starts when %s', async (_what, shape, details) => {
    await expect(opened(shape as StateShape, { handles: [await saved()], generation: 2 })).rejects.toMatchObject({
      code: 'state-incompatible',
      details,
    });
  });
});

describe('time to live', () => {
  test.each([false, true])('a value ends after its time, at hand or stored (flushed: %s)', async (flushed) => {
    const clock = new ManualClock(1000);
    const shape = {
      v: value(int64, { ttl: { durationMs: 100 } }),
      m: map(keyOf<string>(), int64, { ttl: { durationMs: 100 } }),
      day: value(int64, { ttl: {} }),
    };
    const { state } = await opened(shape, { clock, slow: true });
    await on(state, 'a', ({ v, m, day }) => {
      v.set(1);
      m.set('x', 1);
      day.set(1);
    });
    if (flushed) await state.flush();
    clock.advance(50);
    await on(state, 'a', ({ m }) => m.set('y', 2));
    clock.advance(49);
    expect(await on(state, 'a', async ({ v, m }) => [await v.get(), await all(m.keys())])).toEqual([1, ['x', 'y']]);
    clock.advance(1);
    expect(await on(state, 'a', async ({ v, m }) => [await v.get(), await m.has('x'), await all(m.keys())])).toEqual([
      undefined,
      false,
      ['y'],
    ]);
    clock.advance(24 * 3600 * 1000 - 101);
    expect(await on(state, 'a', ({ day }) => day.get())).toBe(1);
    clock.advance(1);
    expect(await on(state, 'a', ({ day }) => day.get())).toBeUndefined();
  });

  test('reads keep a value alive when the state says so, also across a restore', async () => {
    const clock = new ManualClock(1000);
    const shape = { v: value(int64, { ttl: { durationMs: 100, refresh: 'read-and-write' } }) } as const;
    const { state } = await opened(shape, { clock });
    await on(state, 'a', ({ v }) => v.set(1));
    for (let i = 0; i < 5; i++) {
      clock.advance(80);
      expect(await on(state, 'a', ({ v }) => v.get())).toBe(1);
    }
    const handle = await state.snapshot(1);
    const { state: next } = await opened(shape, { clock, handles: [handle], generation: 2 });
    clock.advance(99);
    expect(await on(next, 'a', ({ v }) => v.get())).toBe(1);
    clock.advance(100);
    expect(await on(next, 'a', ({ v }) => v.get())).toBeUndefined();
  });

  test('values outlive the time to live that their state no longer has', async () => {
    const clock = new ManualClock(1000);
    const { state } = await opened({ v: value(int64, { ttl: { durationMs: 100 } }) }, { clock });
    await on(state, 'a', ({ v }) => v.set(1));
    const { state: next } = await opened(
      { v: value(int64) },
      { clock, handles: [await state.snapshot(1)], generation: 2 },
    );
    expect(await on(next, 'a', ({ v }) => v.get())).toBe(1);
    clock.advance(1000);
    const { state: last } = await opened(
      { v: value(int64) },
      { clock, handles: [await next.snapshot(2)], generation: 3 },
    );
    expect(await on(last, 'a', ({ v }) => v.get())).toBe(1);
  });
});

describe('a failure that a handler catches', () => {
  const key = (facade: StateFacade<{ n: ReturnType<typeof value<number>> }>) => facade.n;
  const caught = async (work: () => unknown): Promise<void> => {
    try {
      await work();
    } catch {
      // As a handler does that puts its bad records aside.
    }
  };

  test("to save another key's value is not followed by checkpoints without the changes of the other keys", async () => {
    const failures: unknown[] = [];
    const { state } = await opened({ n: value(int64) }, { changesMax: 4, onFailure: (error) => failures.push(error) });
    await on(state, 'bad', (facade) => key(facade).set('oops' as unknown as number));
    await on(state, 'alice', (facade) => key(facade).set(100));
    await on(state, 'bob', (facade) => key(facade).set(200));
    const bad = expect.objectContaining({
      code: 'state-bad-value',
      message: expect.stringMatching(/state n, key .*bad/),
    });
    await expect(on(state, 'carol', (facade) => caught(() => key(facade).set(300)))).rejects.toEqual(bad);
    expect(failures).toEqual([bad]);
    await expect(state.snapshot(1)).rejects.toEqual(bad);
    await expect(state.snapshot(2)).rejects.toEqual(bad);
    expect(() => state.flush()).toThrow(bad as Error);
    expect(() => state.room()).toThrow(bad as Error);
    expect(() => state.enter('dave')).toThrow(bad as Error);
  });

  test('to save lets no key be evicted with its changes', async () => {
    const { state, workingSet } = await opened({ n: value(int64) }, { changesMax: 3 });
    await on(state, 'bad', (facade) => key(facade).set('oops' as unknown as number));
    await on(state, 'alice', (facade) => key(facade).set(100));
    await expect(on(state, 'bob', (facade) => caught(() => key(facade).set(200)))).rejects.toThrow('oops');
    workingSet.bytes += workingSet.bytesMax;
    expect(() => {
      for (let i = 0; i < 10; i++) workingSet.reclaim();
    }).toThrow('oops');
    expect(workingSet.evictions).toBe(0);
  });

  test.each([false, true])('to load does not let the record write over what is stored (slow: %s)', async (slow) => {
    const store = new MemoryStateStore(new ManualClock());
    const first = await opened({ n: value(string), m: map(string, string) }, { store });
    await on(first.state, 'a', (facade) => {
      facade.n.set('what is stored');
      facade.m.set('x', 'y');
    });
    const handles = [await first.state.snapshot(1)];
    const broken: Codec<string> = {
      ...string,
      decode: () => {
        throw new Error('cannot be read');
      },
    };
    const shape = { n: value(broken), m: map(string, broken) };
    const reads: ReadonlyArray<(facade: StateFacade<typeof shape>) => unknown> = [
      (facade) => facade.n.get(),
      (facade) => facade.m.get('x'),
      (facade) => all(facade.m.entries()),
    ];
    for (const [i, read] of reads.entries()) {
      const failures: unknown[] = [];
      const setup = { store, handles, slow, generation: 2 + i, onFailure: (error: unknown) => failures.push(error) };
      const { state } = await opened(shape, setup);
      const record = on(state, 'a', async (facade) => {
        await caught(() => read(facade));
        facade.n.set('made up');
      });
      await expect(record).rejects.toThrow('cannot be read');
      expect(failures).toHaveLength(1);
      await expect(state.snapshot(2)).rejects.toThrow('cannot be read');
    }
  });
});
