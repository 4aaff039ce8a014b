import { ManualClock } from '@millrace/kernel/testing';
import { expect, test } from 'vitest';
import {
  type AccessScope,
  int64,
  MemoryStateStore,
  openKeyedState,
  type SnapshotHandle,
  type StateTable,
  value,
  WorkingSet,
} from '../index.ts';
import { specOf } from '../testing/table-driver.ts';

const day = 24 * 60 * 60 * 1000;

/** The state of one operator on a store that is asked across a network: what it is asked for is counted. */
async function opened(clock: ManualClock, handles: readonly SnapshotHandle[], ttlMs = day) {
  const store = new MemoryStateStore(clock);
  const table = await store.openTable(specOf({ generation: handles.length + 1 }), handles);
  const asked = { keys: 0 };
  const distant: StateTable = {
    spec: table.spec,
    peek: () => 'unknown',
    multiGet: async (keys) => {
      asked.keys += keys.count;
      return table.multiGet(keys);
    },
    write: (batch) => table.write(batch),
    scan: (range) => table.scan(range),
    snapshot: (checkpoint) => table.snapshot(checkpoint),
    stats: () => table.stats(),
    close: () => table.close(),
  };
  // Neither decoded entries nor stored values are at hand.
  const workingSet = new WorkingSet({ bytesMax: 1, cacheBytesMax: 0, existenceBytesMax: 1 << 20, clock });
  const shape = { count: value(int64, { ttl: { durationMs: ttlMs } }) };
  const state = await openKeyedState({ table: distant, restored: handles.length > 0, shape, workingSet, clock });
  asked.keys = 0;
  return { state, asked };
}

const always: AccessScope = { open: true, enter: () => undefined, leave: () => undefined };
type Counting = Awaited<ReturnType<typeof opened>>['state'];

async function add(state: Counting, key: string): Promise<number> {
  const entry = state.enter(key);
  const { count } = state.facade(entry, always);
  const next = ((await count.get()) ?? 0) + 1;
  count.set(next);
  state.leave(entry);
  return next;
}

async function addAll(state: Counting, from: number, to: number): Promise<number[]> {
  const counts: number[] = [];
  for (let i = from; i < to; i++) counts.push(await add(state, `key ${i}`));
  return counts;
}

test('keys that were never there are asked of nobody; those that were are found', async () => {
  const { state, asked } = await opened(new ManualClock(1), []);
  expect(new Set(await addAll(state, 0, 500))).toEqual(new Set([1]));
  expect(asked.keys).toBe(0);
  expect(new Set(await addAll(state, 0, 500))).toEqual(new Set([2]));
  expect(asked.keys).toBe(500);
});

test('after a restart nothing is known to be absent for one time to live, then all is again', async () => {
  const clock = new ManualClock(1);
  const first = await opened(clock, []);
  await addAll(first.state, 0, 100);
  const handle = await first.state.snapshot(1);
  const { state, asked } = await opened(clock, [handle]);
  expect(new Set(await addAll(state, 0, 200))).toEqual(new Set([2, 1]));
  expect(asked.keys).toBe(200);
  clock.advance(day);
  expect(new Set(await addAll(state, 200, 300))).toEqual(new Set([1]));
  expect(asked.keys).toBe(200);
});

test('a time to live that became shorter does not make the filter forget what lives longer', async () => {
  const clock = new ManualClock(1);
  const first = await opened(clock, []);
  await addAll(first.state, 0, 10);
  const handle = await first.state.snapshot(1);
  const { state } = await opened(clock, [handle], 1000);
  clock.advance(2000);
  expect(new Set(await addAll(state, 0, 10))).toEqual(new Set([2]));
});
