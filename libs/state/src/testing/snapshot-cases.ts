import assert from 'node:assert/strict';
import type { SnapshotHandle, StateStore, StateTable } from '../store.ts';
import type { StateStoreCase } from './conformance-port.ts';
import { asStored, batchOf, keyIn, read, scanned, shareOf, specOf, text, write } from './table-driver.ts';

/** A key in each fourth key group, the first and last included. */
const spread = [...Array.from({ length: 32 }, (_, i) => i * 4), 63, 127].map((group) => keyIn(group, `key ${group}`));

async function values(tables: readonly StateTable[]): Promise<string[]> {
  const parts = await Promise.all(tables.map((table) => scanned(table, { start: text('') })));
  return parts.flatMap((part) => part.values);
}

function openAll(
  store: StateStore,
  parallelism: number,
  generation: number,
  handles: readonly SnapshotHandle[],
): Promise<StateTable[]> {
  return Promise.all(
    Array.from({ length: parallelism }, (_, subtask) =>
      store.openTable(specOf({ subtask, keyGroups: shareOf(subtask, parallelism), generation }), handles),
    ),
  );
}

async function snapshotAll(tables: readonly StateTable[], checkpoint: number): Promise<SnapshotHandle[]> {
  return (await Promise.all(tables.map((table) => table.snapshot(checkpoint)))).map(asStored);
}

function isCode(code: string): (error: unknown) => boolean {
  return (error) => (error as { code?: string }).code === code;
}

function hasKind(kind: string): (error: unknown) => boolean {
  return (error) => (error as { kind?: string }).kind === kind;
}

/** A snapshot is one instant, can be restored anywhere, and only by those whose turn it is. */
export const snapshotCases: readonly StateStoreCase[] = [
  {
    name: 'a snapshot holds exactly the writes before it, those of the same tick included',
    async run({ store, another }) {
      const table = await store.openTable(specOf(), []);
      await write(table, [keyIn(1, 'a'), 'a1'], [keyIn(1, 'gone'), 'x']);
      const before = table.write(
        batchOf([
          [keyIn(1, 'b'), 'b1'],
          [keyIn(1, 'gone'), undefined],
        ]),
      );
      const taking = table.snapshot(1);
      const after = table.write(
        batchOf([
          [keyIn(1, 'a'), 'a2'],
          [keyIn(1, 'c'), 'c2'],
          [keyIn(1, 'b'), undefined],
        ]),
      );
      const handle = asStored(await taking);
      await Promise.all([before, after]);
      assert.deepEqual(await read(table, keyIn(1, 'a'), keyIn(1, 'b'), keyIn(1, 'c')), ['a2', undefined, 'c2']);
      const restored = await (await another()).openTable(specOf({ generation: 2 }), [handle]);
      assert.deepEqual(await values([restored]), ['a1', 'b1']);
      assert.deepEqual(await read(restored, keyIn(1, 'gone'), keyIn(1, 'c')), [undefined, undefined]);
    },
  },
  {
    name: 'each snapshot stays as it was while newer ones are taken',
    async run({ store, another }) {
      const table = await store.openTable(specOf(), []);
      const handles: SnapshotHandle[] = [];
      for (let n = 1; n <= 4; n++) {
        await write(
          table,
          [keyIn(1, 'n'), String(n)],
          [keyIn(n, `only ${n}`), 'x'],
          [keyIn(n - 1, `only ${n - 1}`), undefined],
        );
        handles.push(asStored(await table.snapshot(n)));
      }
      for (const [i, handle] of handles.entries()) {
        const restored = await (await another()).openTable(specOf({ generation: 2 + i }), [handle]);
        assert.deepEqual(await read(restored, keyIn(1, 'n')), [String(i + 1)]);
        assert.equal((await values([restored])).length, 2);
        await restored.close();
      }
    },
  },
  {
    name: 'a handle says whose it is, is plain JSON, and small',
    async run({ store }) {
      const spec = specOf({ keyGroups: { start: 10, end: 20 } });
      const table = await store.openTable(spec, []);
      await write(table, [keyIn(11, 'a'), 'A']);
      const handle = await table.snapshot(7);
      assert.deepEqual(asStored(handle), handle);
      assert.equal(handle.store, store.name);
      assert.equal(handle.operator, spec.operator);
      assert.deepEqual(handle.keyGroups, spec.keyGroups);
      assert.ok(JSON.stringify(handle).length < 4096);
    },
  },
  {
    name: 'a restored table goes on: reads through, overwrites, deletes, snapshots again',
    async run({ store, another }) {
      const first = await store.openTable(specOf(), []);
      await write(first, [keyIn(1, 'a'), 'a1'], [keyIn(2, 'b'), 'b1'], [keyIn(3, 'c'), 'c1']);
      const handle = asStored(await first.snapshot(1));
      const second = await (await another()).openTable(specOf({ generation: 2 }), [handle]);
      await write(second, [keyIn(1, 'a'), 'a2'], [keyIn(2, 'b'), undefined], [keyIn(4, 'd'), 'd2']);
      const next = asStored(await second.snapshot(2));
      const third = await (await another()).openTable(specOf({ generation: 3 }), [next]);
      assert.deepEqual(await values([third]), ['a2', 'c1', 'd2']);
      const again = await (await another()).openTable(specOf({ generation: 4 }), [handle]);
      assert.deepEqual(
        await values([again]),
        ['a1', 'b1', 'c1'],
        'a restored table must not change the snapshot it came from',
      );
    },
  },
  {
    name: 'state follows its key groups from 1 to 3 to 2 subtasks and back',
    async run({ store, another }) {
      let tables = await openAll(store, 1, 1, []);
      await write(tables[0] as StateTable, ...spread.map((key, i) => [key, String(i)] as const));
      let expected = (await values(tables)).toSorted();
      for (const [step, parallelism] of [3, 2, 5, 1].entries()) {
        const handles = await snapshotAll(tables, step + 1);
        tables = await openAll(await another(), parallelism, step + 2, handles);
        assert.deepEqual((await values(tables)).toSorted(), expected);
        for (const [i, table] of tables.entries()) {
          const own = shareOf(i, parallelism);
          for (const key of spread) {
            const group = ((key[0] as number) << 8) | (key[1] as number);
            const inside = group >= own.start && group <= own.end;
            assert.equal((await read(table, key))[0] !== undefined, inside, `key group ${group} of subtask ${i}`);
          }
          await write(table, [keyIn(own.start, `new ${step}`), `new ${step}`]);
        }
        expected = [...expected, ...tables.map(() => `new ${step}`)].toSorted();
        assert.deepEqual((await values(tables)).toSorted(), expected);
      }
    },
  },
  {
    name: 'subtasks that restore from the same snapshot do not see each other',
    async run({ store, another }) {
      const table = await store.openTable(specOf(), []);
      await write(table, [keyIn(0, 'low'), 'low'], [keyIn(127, 'high'), 'high']);
      const handle = asStored(await table.snapshot(1));
      const next = await another();
      const [low, high] = (await openAll(next, 2, 2, [handle])) as [StateTable, StateTable];
      await write(low, [keyIn(0, 'low'), undefined]);
      await write(high, [keyIn(127, 'high'), 'changed']);
      assert.deepEqual(await values([low]), []);
      assert.deepEqual(await values([high]), ['changed']);
    },
  },
  {
    name: 'a restore that leaves key groups uncovered is refused, naming one',
    async run({ store, another }) {
      const tables = await openAll(store, 3, 1, []);
      const handles = await snapshotAll(tables, 1);
      const next = await another();
      const missing = shareOf(1, 3).start;
      await assert.rejects(
        next.openTable(specOf({ generation: 2 }), [handles[0] as SnapshotHandle, handles[2] as SnapshotHandle]),
        (error: unknown) => {
          assert.ok(isCode('state-uncovered-range')(error), String(error));
          assert.ok((error as Error).message.includes(String(missing)), (error as Error).message);
          return true;
        },
      );
      await next.openTable(specOf({ generation: 2, keyGroups: shareOf(0, 3) }), [handles[0] as SnapshotHandle]);
    },
  },
  {
    name: 'an older generation is fenced once a newer one has opened the table',
    async run({ store }) {
      const old = await store.openTable(specOf({ generation: 1 }), []);
      await write(old, [keyIn(1, 'a'), 'old']);
      const handle = asStored(await old.snapshot(1));
      const young = await store.openTable(specOf({ generation: 2 }), [handle]);
      await assert.rejects(async () => old.snapshot(2), hasKind('fenced'));
      await assert.rejects(async () => write(old, [keyIn(1, 'a'), 'zombie']), hasKind('fenced'));
      await assert.rejects(async () => read(old, keyIn(1, 'a')), hasKind('fenced'));
      await assert.rejects(async () => store.openTable(specOf({ generation: 1 }), [handle]), hasKind('fenced'));
      assert.deepEqual(await read(young, keyIn(1, 'a')), ['old']);
      await old.close();
    },
  },
  {
    name: 'subtasks of one generation do not fence each other, nor do other operators',
    async run({ store }) {
      const tables = await openAll(store, 2, 5, []);
      await store.openTable(specOf({ operator: 'other', generation: 9 }), []);
      for (const [i, table] of tables.entries()) await write(table, [keyIn(shareOf(i, 2).start, 'a'), 'A']);
      assert.equal((await values(tables)).length, 2);
    },
  },
  {
    name: 'close is idempotent, and calls after it are refused',
    async run({ store }) {
      const table = await store.openTable(specOf(), []);
      await write(table, [keyIn(1, 'a'), 'A']);
      await table.close();
      await table.close();
      const closed = (error: unknown): boolean => typeof (error as { code?: unknown }).code === 'string';
      await assert.rejects(async () => read(table, keyIn(1, 'a')), closed);
      await assert.rejects(async () => write(table, [keyIn(1, 'a'), 'B']), closed);
      await assert.rejects(async () => table.snapshot(1), closed);
      await assert.rejects(async () => scanned(table, { start: text('') }), closed);
    },
  },
  {
    name: 'closing the store closes its tables',
    async run({ store }) {
      const table = await store.openTable(specOf(), []);
      await store.close();
      await store.close();
      await assert.rejects(async () => write(table, [keyIn(1, 'a'), 'B']));
      await assert.rejects(async () => store.openTable(specOf({ generation: 2 }), []));
    },
  },
  {
    name: 'what was not in a snapshot is not in the restored table',
    async run({ store, another }) {
      const table = await store.openTable(specOf(), []);
      await write(table, [keyIn(1, 'a'), 'saved']);
      const handle = asStored(await table.snapshot(1));
      await write(table, [keyIn(1, 'a'), 'unsaved'], [keyIn(1, 'b'), 'unsaved']);
      await table.close();
      const restored = await (await another()).openTable(specOf({ generation: 2 }), [handle]);
      assert.deepEqual(await values([restored]), ['saved']);
    },
  },
  {
    name: 'statistics follow the table',
    async run({ store }) {
      const table = await store.openTable(specOf(), []);
      await write(table, ...spread.map((key) => [key, 'x'.repeat(100)] as const));
      await table.snapshot(1);
      const stats = table.stats();
      assert.ok(stats.entriesEstimate > 0 && stats.bytesInMemory + stats.bytesStored > 0);
    },
  },
];
