import { ByteWriter } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import { expect, test } from 'vitest';
import type { Codec } from '../codec.ts';
import { optional } from '../codecs/composed.ts';
import { float64, int64, string } from '../codecs/primitives.ts';
import { struct } from '../codecs/struct.ts';
import { aggregating, list, map, reducing, type StateShape, value } from '../handles/descriptors.ts';
import type { StateFacade } from '../handles/handles.ts';
import type { AccessScope } from '../keyed/ports.ts';
import { openKeyedState } from '../keyed/slot-keyed-state.ts';
import { WorkingSet } from '../keyed/working-set.ts';
import { keyOf } from '../keys/key-codec.ts';
import { MemoryStateStore } from '../memory/memory-state-store.ts';
import { specOf } from '../testing/table-driver.ts';
import { type InspectedEntry, TableInspector } from './table-inspector.ts';

const always: AccessScope = { open: true, enter: () => undefined, leave: () => undefined };

/** Lets a job write its state, and opens the checkpoint of it as a tool would, without the job's descriptors. */
async function inspected<S extends StateShape>(
  shape: S,
  write: (
    on: (key: unknown, namespace: number | undefined, work: (facade: StateFacade<S>) => unknown) => Promise<void>,
  ) => Promise<void>,
  options: { readonly clock?: ManualClock; readonly timers?: boolean } = {},
): Promise<TableInspector> {
  const clock = options.clock ?? new ManualClock(1000);
  const store = new MemoryStateStore(clock);
  const table = await store.openTable(specOf({ generation: 1 }), []);
  const workingSet = new WorkingSet({ bytesMax: 1 << 20, clock });
  const state = await openKeyedState({ table, restored: false, shape, workingSet, clock });
  await write(async (key, namespace, work) => {
    const entry = state.enter(key as never, namespace);
    await work(state.facade(entry, always));
    if (options.timers === true) state.eventTimers.register(entry, 5000);
    state.leave(entry);
  });
  const handle = await state.snapshot(1);
  const restored = await new MemoryStateStore(clock).openTable(specOf({ generation: 2 }), [handle]);
  return (await TableInspector.open(restored, clock.nowMs())) as TableInspector;
}

async function all(entries: AsyncIterable<InspectedEntry>): Promise<InspectedEntry[]> {
  const found: InspectedEntry[] = [];
  for await (const entry of entries) found.push(entry);
  return found;
}

/** In an order of their own, for comparison. */
function sorted(rows: readonly unknown[]): string[] {
  return rows.map((row) => JSON.stringify(row)).sort();
}

const shown = ({ state, key, namespace, mapKey, value: stored }: InspectedEntry): unknown[] => [
  state,
  key,
  namespace,
  mapKey,
  stored,
];

test('every kind of state is read without the job: values, rows, lists, maps and windows', async () => {
  const shape = {
    total: reducing(float64, (a, b) => a + b),
    last: value(struct({ at: int64, note: optional(string) })),
    mean: aggregating(
      { create: () => 0, add: (n: number, x: string) => n + x.length, result: (n: number) => n },
      int64,
    ),
    notes: list(string),
    prices: map(keyOf<string>(), float64),
  };
  const inspector = await inspected(shape, async (on) => {
    await on('NYC', undefined, async (state) => {
      await state.total.add(2.5);
      state.last.set({ at: 7, note: 'late' });
      await state.mean.add('x');
      await state.notes.add('a');
      await state.notes.add('b');
      state.prices.set('gate', 1.5);
    });
    await on('NYC', 60_000, (state) => state.total.add(1));
    await on(['SEA', 4], undefined, (state) => state.total.add(9));
  });
  expect(inspector.states.map(({ name, kind, inRow }) => [name, kind, inRow])).toEqual([
    ['total', 'reducing', true],
    ['last', 'value', true],
    ['mean', 'aggregating', true],
    ['notes', 'list', false],
    ['prices', 'map', false],
  ]);
  const key = { value: 'NYC' };
  const nyc = await all(inspector.entriesOf(inspector.keyBytes('NYC')));
  expect(sorted(nyc.map(shown))).toEqual(
    sorted([
      ['notes', key, undefined, undefined, { value: ['a', 'b'] }],
      ['prices', key, undefined, { value: 'gate' }, { value: 1.5 }],
      ['total', key, undefined, undefined, { value: 2.5 }],
      ['last', key, undefined, undefined, { value: { at: 7, note: 'late' } }],
      ['mean', key, undefined, undefined, { value: 1 }],
      ['total', key, 60_000, undefined, { value: 1 }],
    ]),
  );
  const totals = await all(inspector.entries({ states: ['total'] }));
  expect(sorted(totals.map((entry) => [entry.key, entry.value]))).toEqual(
    sorted([
      [key, { value: 2.5 }],
      [key, { value: 1 }],
      [{ value: ['SEA', 4] }, { value: 9 }],
    ]),
  );
  expect(await all(inspector.entriesOf(inspector.keyBytes('LAX')))).toEqual([]);
});

test('what has expired is not shown, whatever of its row lives on', async () => {
  const clock = new ManualClock(1000);
  const shape = { brief: value(int64, { ttl: { durationMs: 60_000 } }), long: value(int64) };
  const inspector = await inspected(
    shape,
    async (on) => {
      await on('k', undefined, (state) => {
        state.brief.set(1);
        state.long.set(2);
      });
      clock.advance(60_000);
    },
    { clock },
  );
  expect((await all(inspector.entries())).map(({ state }) => state)).toEqual(['long']);
});

test('a value whose codec is the job’s own is shown as its bytes, with the name of the format', async () => {
  const own: Codec<string> = {
    format: 'own',
    encode: (text: string, writer: ByteWriter) => writer.utf8(text),
    decode: (reader) => reader.utf8(reader.remaining),
  };
  const inspector = await inspected({ it: value(own) }, (on) => on('k', undefined, (state) => state.it.set('hi')));
  const [entry] = await all(inspector.entries());
  expect(entry?.value).toEqual({ undecoded: Uint8Array.from(Buffer.from('hi')), format: 'own' });
});

test('timers are found beside the states, by key', async () => {
  const inspector = await inspected(
    { it: value(int64) },
    async (on) => {
      await on('a', undefined, (state) => state.it.set(1));
      await on('b', undefined, (state) => state.it.set(1));
    },
    { timers: true },
  );
  const states = ['event-timers'];
  const of = await all(inspector.entriesOf(inspector.keyBytes('b'), { states }));
  expect(of.map(({ key, value: fires }) => [key, fires])).toEqual([[{ value: 'b' }, { value: 5000 }]]);
  expect(await all(inspector.entries({ states }))).toHaveLength(2);
});

test('a state that is not there is named with those that are', async () => {
  const inspector = await inspected({ it: value(int64) }, (on) => on('a', undefined, (state) => state.it.set(1)));
  await expect(all(inspector.entries({ states: ['that'] }))).rejects.toMatchObject({
    code: 'bad-argument',
    message: 'there is no state that; there are it, event-timers, processing-timers',
  });
});
