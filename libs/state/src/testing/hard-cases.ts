import assert from 'node:assert/strict';
import { compareBytes, SeededRandom } from '@millrace/kernel';
import type { SnapshotHandle, StateStore, StateTable } from '../store.ts';
import type { StateStoreCase } from './conformance-port.ts';
import { asStored, batchOf, keyIn, read, scanned, specOf, text, type Write, write } from './table-driver.ts';

const hex = (key: Uint8Array): string => Buffer.from(key).toString('hex');

/** Keys in a few key groups, some of them prefixes of others. */
const keys = [0, 1, 3].flatMap((group) => ['', 'a', 'a\0', 'ab', 'b'].map((rest) => keyIn(group, rest)));

/** What a table must hold: values by key in hex. */
type Model = ReadonlyMap<string, string>;

async function checkScan(table: StateTable, model: Model): Promise<void> {
  const all = await scanned(table, { start: text(''), pageEntriesMax: 7 });
  const expected = [...model].toSorted(([a], [b]) => compareBytes(Buffer.from(a, 'hex'), Buffer.from(b, 'hex')));
  assert.deepEqual(
    all.keys.map((key, i) => [key, all.values[i]]),
    expected,
  );
}

async function checkAgainst(table: StateTable, model: Model): Promise<void> {
  await checkScan(table, model);
  const values = await read(table, ...keys);
  assert.deepEqual(
    values,
    keys.map((key) => model.get(hex(key))),
  );
}

/** Calls that are not waited for, in random order, against a sorted map; then each snapshot restored and compared. */
async function randomRun(store: StateStore, another: () => Promise<StateStore>, seed: number): Promise<void> {
  const random = new SeededRandom(seed);
  const spec = specOf({ operator: `seed-${seed}`, keyGroups: { start: 0, end: 3 } });
  const table = await store.openTable(spec, []);
  let model = new Map<string, string>();
  const waiting: Promise<unknown>[] = [];
  const snapshots: [Promise<SnapshotHandle>, Model][] = [];
  for (let step = 0; step < 60; step++) {
    const kind = random.below(10);
    if (kind < 6) {
      const writes: Write[] = [];
      for (let left = random.below(4) + 1; left > 0; left--) {
        const key = keys[random.below(keys.length)] as Uint8Array;
        const value = random.below(4) === 0 ? undefined : `${step}.${left}`;
        writes.push([key, value]);
        model = new Map(model);
        if (value === undefined) model.delete(hex(key));
        else model.set(hex(key), value);
      }
      waiting.push(Promise.resolve(table.write(batchOf(writes))));
    } else if (kind < 8) {
      const expected = keys.map((key) => model.get(hex(key)));
      const reading = read(table, ...keys);
      waiting.push(reading.then((values) => assert.deepEqual(values, expected, `seed ${seed}, step ${step}`)));
    } else if (kind < 9) {
      waiting.push(checkScan(table, model));
    } else if (snapshots.length < 4) {
      snapshots.push([table.snapshot(snapshots.length + 1), model]);
    }
  }
  snapshots.push([table.snapshot(9), model]);
  await Promise.all(waiting);
  await checkAgainst(table, model);
  for (const [i, [taking, expected]] of snapshots.entries()) {
    const handle = asStored(await taking);
    const restored = await (await another()).openTable({ ...spec, generation: 2 + i }, [handle]);
    await checkAgainst(restored, expected);
    await restored.close();
  }
}

/** What goes wrong when much happens at once, or in an order that nobody thought of. */
export const hardCases: readonly StateStoreCase[] = [
  {
    name: 'calls in random order do to a table what they do to a sorted map, and to its snapshots',
    async run({ store, another }) {
      for (const seed of [1, 2, 3]) await randomRun(store, another, seed);
    },
  },
  {
    name: 'a snapshot of thousands of entries holds none of the writes that come while it is taken',
    async run({ store, another }) {
      const spec = specOf({ keyGroups: { start: 0, end: 7 } });
      const table = await store.openTable(spec, []);
      const many = Array.from({ length: 3000 }, (_, n) => keyIn(n % 8, `key ${n}`));
      void table.write(batchOf(many.map((key) => [key, 'before'] as const)));
      const taking = table.snapshot(1);
      for (let round = 0; round < 5; round++) {
        await table.write(batchOf(many.map((key, n) => [key, n % 3 === 0 ? undefined : `after ${round}`] as const)));
      }
      const handle = asStored(await taking);
      const restored = await (await another()).openTable({ ...spec, generation: 2 }, [handle]);
      const all = await scanned(restored, { start: text('') });
      assert.equal(all.values.length, many.length);
      assert.deepEqual(new Set(all.values), new Set(['before']));
    },
  },
  {
    name: 'large values beside small ones: written, overwritten, scanned and restored whole',
    async run({ store, another }) {
      const table = await store.openTable(specOf(), []);
      const large = (n: number): string => String(n).repeat(300_000);
      for (let n = 0; n < 6; n++) await write(table, [keyIn(5, `large ${n}`), large(n)], [keyIn(5, `small ${n}`), 's']);
      await write(table, [keyIn(5, 'large 0'), large(7)], [keyIn(5, 'large 1'), undefined]);
      const expected = [7, 2, 3, 4, 5].map(large);
      const taken = await scanned(table, { start: keyIn(5, 'large'), end: keyIn(5, 'm'), pageEntriesMax: 2 });
      assert.ok(taken.values.length === 5 && taken.values.every((value, i) => value === expected[i]));
      const handle = asStored(await table.snapshot(1));
      const restored = await (await another()).openTable(specOf({ generation: 2 }), [handle]);
      const values = await read(restored, keyIn(5, 'large 0'), keyIn(5, 'large 1'), keyIn(5, 'small 5'));
      assert.ok(values[0] === large(7) && values[1] === undefined && values[2] === 's');
    },
  },
  {
    name: 'a table that is opened again in the same generation begins with its snapshot and nothing else',
    async run({ store, another }) {
      const first = await store.openTable(specOf(), []);
      await write(first, [keyIn(1, 'a'), 'saved']);
      const handle = asStored(await first.snapshot(1));
      await write(first, [keyIn(1, 'a'), 'unsaved'], [keyIn(1, 'b'), 'unsaved']);
      await first.close();
      const again = await (await another()).openTable(specOf(), [handle]);
      assert.deepEqual(await read(again, keyIn(1, 'a'), keyIn(1, 'b')), ['saved', undefined]);
      await again.close();
      const empty = await (await another()).openTable(specOf(), []);
      assert.deepEqual((await scanned(empty, { start: text('') })).keys, []);
    },
  },
  {
    name: 'an older generation is fenced in other processes, too',
    async run({ store, another, generationsInHome }) {
      if (!generationsInHome) return;
      const old = await store.openTable(specOf({ generation: 1 }), []);
      await write(old, [keyIn(1, 'a'), 'good']);
      const handle = asStored(await old.snapshot(1));
      const young = await (await another()).openTable(specOf({ generation: 2 }), [handle]);
      const isFenced = (error: unknown): boolean => (error as { kind?: string }).kind === 'fenced';
      await assert.rejects(async () => {
        await write(old, [keyIn(1, 'a'), 'zombie']);
        await old.snapshot(2);
      }, isFenced);
      await assert.rejects(async () => (await another()).openTable(specOf({ generation: 1 }), [handle]), isFenced);
      assert.deepEqual(await read(young, keyIn(1, 'a')), ['good']);
    },
  },
  {
    name: 'a released snapshot is forgotten; those beside it and tables restored from it go on',
    async run({ store, another }) {
      const { retained } = store;
      if (retained === undefined) return;
      const table = await store.openTable(specOf(), []);
      await write(table, [keyIn(1, 'a'), 'one'], [keyIn(1, 'b'), 'one']);
      const first = asStored(await table.snapshot(1));
      await write(table, [keyIn(1, 'a'), 'two']);
      const second = asStored(await table.snapshot(2));
      const ids = [first, second].map((handle) => String(handle.data['snapshot']));
      const job = String(first.data['job']);
      assert.ok((await retained.jobs()).includes(job));
      assert.deepEqual((await retained.list(job)).toSorted(), ids.toSorted());
      const restored = await (await another()).openTable(specOf({ generation: 2 }), [first]);
      await retained.release(job, ids[0] as string);
      await retained.release(job, ids[0] as string);
      assert.deepEqual(await retained.list(job), ids.slice(1));
      assert.deepEqual(await read(restored, keyIn(1, 'a'), keyIn(1, 'b')), ['one', 'one']);
      const third = await (await another()).openTable(specOf({ generation: 3 }), [second]);
      assert.deepEqual(await read(third, keyIn(1, 'a'), keyIn(1, 'b')), ['two', 'one']);
      const gone = (error: unknown): boolean => typeof (error as { code?: unknown }).code === 'string';
      await assert.rejects((await another()).openTable(specOf({ generation: 4 }), [first]), gone);
    },
  },
];
