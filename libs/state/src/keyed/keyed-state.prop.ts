import assert from 'node:assert/strict';
import { ByteWriter, isPending, keyGroupOf, keyGroupRange, type SeededRandom } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import { expect, test } from 'vitest';
import { int64, string } from '../codecs/primitives.ts';
import { aggregating, list, map, reducing, value } from '../handles/descriptors.ts';
import type { StateFacade } from '../handles/handles.ts';
import { keyCodec, keyOf } from '../keys/key-codec.ts';
import type { KeyValue } from '../keys/key-value.ts';
import { primitiveKey } from '../keys/primitive-key.ts';
import { MemoryStateStore } from '../memory/memory-state-store.ts';
import type { SnapshotHandle } from '../store.ts';
import { forSeeds } from '../testing/property.ts';
import { slowStore } from '../testing/slow-store.ts';
import { asStored, specOf } from '../testing/table-driver.ts';
import type { KeyedState } from './ports.ts';
import { openKeyedState } from './slot-keyed-state.ts';
import { WorkingSet } from './working-set.ts';

const maxParallelism = 16;
const ttlMs = 500;

const shape = {
  value: value(int64),
  mortal: value(int64, { ttl: { durationMs: ttlMs } }),
  touched: value(string, { ttl: { durationMs: ttlMs, refresh: 'read-and-write' } }),
  list: list(string),
  map: map(keyOf<number>(), int64),
  mortalMap: map(keyOf<number>(), int64, { ttl: { durationMs: ttlMs } }),
  reducing: reducing(int64, (a, b) => Math.max(a, b)),
  aggregating: aggregating(
    { create: () => 0, add: (sum, n: number) => sum + n, merge: (a, b) => a + b, result: (sum) => `sum ${sum}` },
    int64,
  ),
};
type Facade = StateFacade<typeof shape>;

/** A value with its end; 0 means never. */
interface Mortal<T> {
  value: T;
  expiresAtMs: number;
}

/** The states of one key, as a handler's author understands them. */
class Model {
  value: number | undefined;
  mortal: Mortal<number> | undefined;
  touched: Mortal<string> | undefined;
  list: string[] = [];
  readonly map = new Map<number, number>();
  readonly mortalMap = new Map<number, Mortal<number>>();
  reducing: number | undefined;
  sum: number | undefined;
}

function live<T>(mortal: Mortal<T> | undefined, nowMs: number): T | undefined {
  return mortal !== undefined && nowMs < mortal.expiresAtMs ? mortal.value : undefined;
}

function liveEntries(model: Model, nowMs: number): [number, number][] {
  return [...model.mortalMap]
    .filter(([, item]) => nowMs < item.expiresAtMs)
    .map(([key, item]): [number, number] => [key, item.value])
    .toSorted(byKey);
}

function byKey(a: readonly [number, number], b: readonly [number, number]): number {
  return a[0] - b[0];
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const out: T[] = [];
  for await (const item of items) out.push(item);
  return out;
}

/** Deeply equal. */
function same(actual: unknown, expected: unknown): void {
  assert.deepStrictEqual(actual, expected);
}

/** One random step of a handler, on the state and on the model. */
async function step(facade: Facade, model: Model, random: SeededRandom, clock: ManualClock): Promise<void> {
  const n = random.below(100);
  const mapKey = random.below(12) - 6;
  const nowMs = clock.nowMs();
  const expiresAtMs = nowMs + ttlMs;
  switch (random.below(26)) {
    case 0:
    case 1:
      facade.value.set(n);
      model.value = n;
      return;
    case 2:
      facade.value.clear();
      model.value = undefined;
      return;
    case 3:
      await facade.value.update((old) => (old ?? 0) + n);
      model.value = (model.value ?? 0) + n;
      return;
    case 4:
      return same(await facade.value.get(), model.value);
    case 5:
      facade.mortal.set(n);
      model.mortal = { value: n, expiresAtMs };
      return;
    case 6:
      return same(await facade.mortal.get(), live(model.mortal, nowMs));
    case 7:
      facade.touched.set(`t${n}`);
      model.touched = { value: `t${n}`, expiresAtMs };
      return;
    case 8: {
      const expected = live(model.touched, nowMs);
      same(await facade.touched.get(), expected);
      if (expected !== undefined) model.touched = { value: expected, expiresAtMs };
      return;
    }
    case 9:
      await facade.list.add(`l${n}`);
      model.list.push(`l${n}`);
      return;
    case 10:
      if (n < 20) {
        facade.list.set([`s${n}`]);
        model.list = [`s${n}`];
      }
      return;
    case 11:
      if (n >= 20) return;
      facade.list.clear();
      model.list = [];
      return;
    case 12:
      return same(await facade.list.get(), model.list);
    case 13:
    case 14:
      facade.map.set(mapKey, n);
      model.map.set(mapKey, n);
      return;
    case 15:
      facade.map.delete(mapKey);
      model.map.delete(mapKey);
      return;
    case 16:
      return same(await facade.map.get(mapKey), model.map.get(mapKey));
    case 17:
      return same(await facade.map.has(mapKey), model.map.has(mapKey));
    case 18:
      return same(await all(facade.map.entries()), [...model.map].toSorted(byKey));
    case 19: {
      const until = mapKey + random.below(6);
      const expected = [...model.map].filter(([key]) => key >= mapKey && key < until).toSorted(byKey);
      return same(await all(facade.map.entries({ from: mapKey, until })), expected);
    }
    case 20:
      if (n >= 30) return;
      await facade.map.clear();
      model.map.clear();
      return;
    case 21:
      facade.mortalMap.set(mapKey, n);
      model.mortalMap.set(mapKey, { value: n, expiresAtMs });
      return;
    case 22:
      same(await facade.mortalMap.get(mapKey), live(model.mortalMap.get(mapKey), nowMs));
      return same(await all(facade.mortalMap.entries()), liveEntries(model, nowMs));
    case 23:
      await facade.reducing.add(n);
      model.reducing = Math.max(model.reducing ?? n, n);
      return same(await facade.reducing.get(), model.reducing);
    case 24:
      await facade.aggregating.add(n);
      model.sum = (model.sum ?? 0) + n;
      return;
    default:
      return same(await facade.aggregating.get(), model.sum === undefined ? undefined : `sum ${model.sum}`);
  }
}

const keys: readonly KeyValue[] = ['a', 'b', 'c', 1, 2, 3, 'long '.repeat(40), { x: 1 }, [1, 'a'], null, true, 5n];
const windows: readonly (KeyValue | undefined)[] = [undefined, undefined, 0, 60_000];

function groupOf(key: KeyValue): number {
  const writer = new ByteWriter();
  keyCodec.encode(key, writer);
  return keyGroupOf(writer.bytes, 0, writer.position, maxParallelism);
}

interface Subtask {
  readonly state: KeyedState<typeof shape>;
  readonly start: number;
  readonly end: number;
}

async function openAll(
  random: SeededRandom,
  clock: ManualClock,
  workingSet: WorkingSet,
  attempt: { generation: number; parallelism: number; handles: readonly SnapshotHandle[] },
): Promise<Subtask[]> {
  const { generation, parallelism, handles } = attempt;
  const memory = new MemoryStateStore(clock);
  const store = random.below(4) === 0 ? memory : slowStore(memory, random);
  return Promise.all(
    Array.from({ length: parallelism }, async (_, subtask) => {
      const keyGroups = keyGroupRange(subtask, parallelism, maxParallelism);
      const table = await store.openTable(specOf({ subtask, keyGroups, maxParallelism, generation }), handles);
      const changesMax = 1 + random.below(20);
      const state = await openKeyedState({
        table,
        restored: handles.length > 0,
        handles: random.below(2) === 0 ? handles : undefined,
        shape,
        workingSet,
        clock,
        changesMax,
      });
      return { state, ...keyGroups };
    }),
  );
}

test('all kinds of state behave as their model, in flight together, through eviction, expiry, restore and rescale', async () => {
  let evictions = 0;
  let asynchronous = 0;
  let cacheEvictions = 0;
  let cacheHits = 0;
  let knownAbsent = 0;
  await forSeeds(12, async (random) => {
    const clock = new ManualClock(1_000_000);
    const models = new Map<string, Model>();
    let handles: readonly SnapshotHandle[] = [];
    for (let generation = 1; generation <= 3; generation++) {
      const bytesMax = [1, 4000, 1_000_000][random.below(3)] as number;
      const cacheBytesMax = [0, 2000, 1_000_000][random.below(3)] as number;
      const existenceBytesMax = [0, 20_000, 1_000_000][random.below(3)] as number;
      const workingSet = new WorkingSet({ bytesMax, cacheBytesMax, existenceBytesMax, clock });
      const parallelism = 1 + random.below(4);
      const subtasks = await openAll(random, clock, workingSet, { generation, parallelism, handles });
      for (let round = 0; round < 12; round++) {
        const distinct = keys.filter(() => random.below(3) > 0);
        // Records of different keys are in flight together; those of one key are not.
        await Promise.all(
          distinct.map(async (key) => {
            const group = groupOf(key);
            const { state } = subtasks.find((one) => group >= one.start && group <= one.end) as Subtask;
            const window = windows[random.below(windows.length)];
            const id = `${String(primitiveKey(key))} ${typeof key} ${JSON.stringify(window)}`;
            const model = models.get(id) ?? new Model();
            models.set(id, model);
            const room = state.room();
            if (room !== undefined) await room;
            const entry = state.enter(key, window);
            const scope = {
              open: true,
              waiting: 0,
              enter: () => void scope.waiting++,
              leave: () => void scope.waiting--,
            };
            const facade = state.facade(entry, scope);
            const reads = random.below(2) === 0;
            for (let steps = random.below(6); steps > 0; steps--) {
              if (reads && isPending(facade.value.get())) asynchronous++;
              await step(facade, model, random, clock);
            }
            // Otherwise what was only written is saved without ever having been read.
            if (reads) await facade.value.get();
            scope.open = false;
            state.leave(entry);
          }),
        );
        clock.advance(random.below(4) === 0 ? random.below(2 * ttlMs) : 0);
        if (random.below(4) === 0) await Promise.all(subtasks.map(async ({ state }) => state.flush()));
      }
      handles = (await Promise.all(subtasks.map(({ state }) => settledSnapshot(state, generation)))).map(asStored);
      await Promise.all(subtasks.map(({ state }) => state.close()));
      evictions += workingSet.evictions;
      cacheEvictions += workingSet.cache.evictions;
      cacheHits += workingSet.cache.hits;
      knownAbsent += workingSet.existence.stats.absent;
      expect(workingSet.bytes).toBe(0);
    }
  });
  // The property says nothing if the interesting paths were never taken.
  expect(evictions).toBeGreaterThan(100);
  expect(asynchronous).toBeGreaterThan(100);
  expect(cacheEvictions).toBeGreaterThan(100);
  expect(cacheHits).toBeGreaterThan(100);
  expect(knownAbsent).toBeGreaterThan(0);
});

async function settledSnapshot(state: KeyedState<typeof shape>, checkpoint: number): Promise<SnapshotHandle> {
  await state.settled();
  return state.snapshot(checkpoint);
}
