import { isPending, SeededRandom } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import { expect, test } from 'vitest';
import { bytes, int64, string } from '../codecs/primitives.ts';
import { map, type StateShape, value } from '../handles/descriptors.ts';
import type { StateFacade } from '../handles/handles.ts';
import { keyOf } from '../keys/key-codec.ts';
import { rowStateId } from '../keys/key-layout.ts';
import { MemoryStateStore } from '../memory/memory-state-store.ts';
import { packedItem } from '../packed.ts';
import type { SnapshotHandle, StateTable } from '../store.ts';
import { slowStore } from '../testing/slow-store.ts';
import { asStored, specOf } from '../testing/table-driver.ts';
import type { KeyedState } from './ports.ts';
import { openKeyedState } from './slot-keyed-state.ts';
import { WorkingSet } from './working-set.ts';

interface Opened<S extends StateShape> {
  readonly state: KeyedState<S>;
  readonly table: StateTable;
  readonly workingSet: WorkingSet;
}

const clock = new ManualClock(1000);

async function open<S extends StateShape>(
  shape: S,
  from: {
    handles?: readonly SnapshotHandle[];
    slow?: boolean | number;
    cacheBytesMax?: number;
    generation?: number;
  } = {},
): Promise<Opened<S>> {
  const memory = new MemoryStateStore(clock);
  const store =
    from.slow === undefined || from.slow === false ? memory : slowStore(memory, new SeededRandom(Number(from.slow)));
  const handles = from.handles ?? [];
  const table = await store.openTable(specOf({ generation: from.generation ?? 1 }), handles);
  const workingSet = new WorkingSet({ bytesMax: 1, cacheBytesMax: from.cacheBytesMax ?? 0, clock });
  const state = await openKeyedState({ table, restored: handles.length > 0, shape, workingSet, clock });
  return { state, table, workingSet };
}

async function on<S extends StateShape, R>(
  { state }: Opened<S>,
  key: unknown,
  handler: (facade: StateFacade<S>) => R | Promise<R>,
): Promise<R> {
  await state.room();
  const entry = state.enter(key);
  try {
    return await handler(state.facade(entry, { open: true, enter() {}, leave() {} }));
  } finally {
    state.leave(entry);
  }
}

/** A checkpoint, as the operator takes it. */
async function checkpoint<S extends StateShape>({ state }: Opened<S>, id: number): Promise<SnapshotHandle[]> {
  await state.settled();
  const handle = asStored(await state.snapshot(id));
  await state.close();
  return [handle];
}

async function storedStateIds(table: StateTable): Promise<number[]> {
  const ids: number[] = [];
  for await (const page of table.scan({ start: new Uint8Array() })) {
    for (let i = 0; i < page.keys.count; i++) {
      const key = packedItem(page.keys, i);
      ids.push(((key[2] as number) << 8) | (key[3] as number));
    }
  }
  return ids.filter((id) => id < 0xff00 || id === rowStateId);
}

const two = { count: value(int64), name: value(string) };

test('the single values of a key are one entry of the table; a map has its own, and so has what is apart', async () => {
  const opened = await open({ ...two, photo: value(bytes, { apart: true }), items: map(keyOf<number>(), int64) });
  await on(opened, 'a', ({ count, name, photo, items }) => {
    count.set(1);
    name.set('x');
    photo.set(new Uint8Array(3));
    items.set(1, 2);
    items.set(3, 4);
  });
  await opened.state.settled();
  await opened.state.flush();
  const ids = await storedStateIds(opened.table);
  expect(ids.filter((id) => id === rowStateId)).toHaveLength(1);
  expect(ids).toHaveLength(4);
});

test('a single value alone is not put into a row', async () => {
  const opened = await open({ count: value(int64) });
  await on(opened, 'a', ({ count }) => count.set(1));
  await opened.state.flush();
  expect(await storedStateIds(opened.table)).toEqual([1]);
});

test.each([
  [false, 0],
  [true, 0],
  [true, 1 << 16],
])('a handler that writes one value without reading keeps the others (slow: %s, cache: %i)', async (slow, cache) => {
  const first = await open(two);
  await on(first, 'a', ({ count, name }) => {
    count.set(7);
    name.set('kept');
  });
  const handles = await checkpoint(first, 1);
  const second = await open(two, { handles, slow, cacheBytesMax: cache, generation: 2 });
  await on(second, 'a', ({ count }) => count.set(8));
  await on(second, 'b', ({ name }) => name.set('new'));
  const third = await open(two, { handles: await checkpoint(second, 2), generation: 3 });
  expect(await on(third, 'a', async ({ count, name }) => [await count.get(), await name.get()])).toEqual([8, 'kept']);
  expect(await on(third, 'b', async ({ count, name }) => [await count.get(), await name.get()])).toEqual([
    undefined,
    'new',
  ]);
});

test('a write made while the row is on its way is what later reads and checkpoints see', async () => {
  let waited = false;
  for (let seed = 1; seed <= 8; seed++) {
    const first = await open(two);
    await on(first, 'a', ({ count, name }) => {
      count.set(1);
      name.set('old');
    });
    const second = await open(two, {
      handles: await checkpoint(first, 1),
      slow: seed,
      cacheBytesMax: 1 << 16,
      generation: 2,
    });
    await on(second, 'a', async ({ count, name }) => {
      const reading = count.get();
      waited ||= isPending(reading);
      const expected = isPending(reading) ? 2 : 1;
      count.set(2);
      name.set('new');
      await second.state.flush();
      expect(await reading).toBe(expected);
    });
    await second.state.settled();
    expect(await on(second, 'a', async ({ count, name }) => [await count.get(), await name.get()])).toEqual([2, 'new']);
    const third = await open(two, { handles: await checkpoint(second, 2), generation: 3 });
    expect(await on(third, 'a', async ({ count, name }) => [await count.get(), await name.get()])).toEqual([2, 'new']);
  }
  expect(waited).toBe(true);
});

test('values of states that the job no longer declares stay in the row', async () => {
  const first = await open(two);
  await on(first, 'a', ({ count, name }) => {
    count.set(1);
    name.set('kept');
  });
  const second = await open(
    { count: two.count, more: value(int64) },
    { handles: await checkpoint(first, 1), slow: true, generation: 2 },
  );
  await on(second, 'a', async ({ count, more }) => {
    count.set(2);
    more.set(3);
    expect(await count.get()).toBe(2);
  });
  const third = await open({ ...two, more: value(int64) }, { handles: await checkpoint(second, 2), generation: 3 });
  await on(third, 'a', async ({ count, name, more }) => {
    expect([await count.get(), await name.get(), await more.get()]).toEqual([2, 'kept', 3]);
  });
});

test('a row whose values are all cleared leaves nothing in the table', async () => {
  const opened = await open(two);
  await on(opened, 'a', ({ count }) => count.set(1));
  await opened.state.settled();
  await on(opened, 'a', ({ count, name }) => {
    count.clear();
    name.clear();
  });
  await opened.state.settled();
  await opened.state.flush();
  expect(await storedStateIds(opened.table)).toEqual([]);
});

const ttl = (durationMs: number): { ttl: { durationMs: number } } => ({ ttl: { durationMs } });

test('a value with a life of its own is not kept by values in a row that live longer', async () => {
  const opened = await open({ ...two, soon: value(int64, ttl(100)) });
  await on(opened, 'a', ({ count, name, soon }) => {
    count.set(1);
    name.set('x');
    soon.set(2);
  });
  await opened.state.settled();
  await opened.state.flush();
  expect(await storedStateIds(opened.table)).toHaveLength(2);
  clock.advance(200);
  expect(await storedStateIds(opened.table)).toEqual([rowStateId]);
});

test('a row whose values end goes also when one of them was copied as it was', async () => {
  const opened = await open({ one: value(int64, ttl(100)), other: value(int64, ttl(100)) });
  await on(opened, 'a', ({ one, other }) => {
    one.set(1);
    other.set(2);
  });
  await on(opened, 'b', ({ one }) => one.set(9));
  clock.advance(50);
  await on(opened, 'a', ({ one }) => one.set(3));
  await opened.state.settled();
  await opened.state.flush();
  clock.advance(75);
  expect(await storedStateIds(opened.table)).toEqual([rowStateId]);
  expect(await on(opened, 'a', async ({ one, other }) => [await one.get(), await other.get()])).toEqual([3, undefined]);
  clock.advance(75);
  expect(await storedStateIds(opened.table)).toEqual([]);
});

test('a row ends when its last value does, and a value on its own time before', async () => {
  const opened = await open(
    { soon: value(int64, ttl(300)), later: value(int64, ttl(300)) },
    { cacheBytesMax: 1 << 16 },
  );
  await on(opened, 'a', ({ soon }) => soon.set(1));
  await opened.state.settled();
  clock.advance(200);
  await on(opened, 'a', ({ later }) => later.set(2));
  await opened.state.settled();
  await opened.state.flush();
  clock.advance(200);
  await on(opened, 'b', ({ soon }) => soon.set(9));
  expect(await on(opened, 'a', async ({ soon, later }) => [await soon.get(), await later.get()])).toEqual([
    undefined,
    2,
  ]);
  expect(await storedStateIds(opened.table)).toContain(rowStateId);
  clock.advance(400);
  expect(await on(opened, 'a', async ({ soon, later }) => [await soon.get(), await later.get()])).toEqual([
    undefined,
    undefined,
  ]);
  expect(await storedStateIds(opened.table)).toEqual([]);
});

test('what a handler reads again is answered from the cache, not from the store', async () => {
  const first = await open(two);
  await on(first, 'a', ({ count, name }) => {
    count.set(1);
    name.set('x');
  });
  const opened = await open(two, {
    handles: await checkpoint(first, 1),
    slow: true,
    cacheBytesMax: 1 << 16,
    generation: 2,
  });
  await on(opened, 'a', async ({ count }) => void (await count.get()));
  await on(opened, 'b', async ({ count }) => void (await count.get()));
  await on(opened, 'a', ({ count }) => expect(count.get()).toBe(1));
  await on(opened, 'b', ({ count }) => expect(count.get()).toBeUndefined());
});

test('an entry that has to fetch its row before it can be saved stays at hand: the next record of its key sees its writes', async () => {
  for (let seed = 1; seed <= 8; seed++) {
    const first = await open(two);
    await on(first, 'a', ({ count, name }) => {
      count.set(1);
      name.set('kept');
    });
    const handles = await checkpoint(first, 1);
    // The working set has room for nothing: the entry is evicted when its handler ends.
    const second = await open(two, { handles, slow: seed, generation: 2 });
    await on(second, 'a', ({ count }) => count.set(2));
    const next = await on(second, 'a', async ({ count }) => {
      const seen = await count.get();
      count.set((seen ?? 0) + 1);
      return seen;
    });
    expect(next).toBe(2);
    const third = await open(two, { handles: await checkpoint(second, 2), generation: 3 });
    expect(await on(third, 'a', async ({ count, name }) => [await count.get(), await name.get()])).toEqual([3, 'kept']);
  }
});
