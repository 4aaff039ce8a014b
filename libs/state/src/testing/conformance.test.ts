import type { Clock } from '@millrace/kernel';
import { expect, test } from 'vitest';
import { MemoryStateStore } from '../memory/memory-state-store.ts';
import { packValues } from '../packed.ts';
import type { SnapshotHandle, StateStore, StateTable, TableSpec } from '../store.ts';
import type { WriteBatch } from '../write-batch.ts';
import { runStateStoreCase, stateStoreCases, stateStoreConformance } from './conformance.ts';
import type { OpenStateStore } from './conformance-port.ts';
import { batchOf } from './table-driver.ts';

function fixtureOf(make: (clock: Clock) => StateStore): OpenStateStore {
  return (clock) => {
    const stores = [make(clock)];
    return Promise.resolve({
      store: stores[0] as StateStore,
      another: () => {
        const store = make(clock);
        stores.push(store);
        return Promise.resolve(store);
      },
      close: async () => void (await Promise.all(stores.map((store) => store.close()))),
    });
  };
}

stateStoreConformance(
  'memory',
  fixtureOf((clock) => new MemoryStateStore(clock)),
);

/** A store that breaks one promise: `breakTable` changes each table that a sound store opens. */
function mutant(
  breakTable: (table: StateTable) => Partial<StateTable>,
  breakOpen: (spec: TableSpec, handles: readonly SnapshotHandle[]) => [TableSpec, readonly SnapshotHandle[]] = (
    ...all
  ) => all,
): OpenStateStore {
  return fixtureOf((clock) => {
    const store = new MemoryStateStore(clock);
    return {
      name: store.name,
      close: () => store.close(),
      async openTable(spec, handles) {
        const table = await store.openTable(...breakOpen(spec, handles));
        return Object.assign(Object.create(table) as StateTable, bound(table), breakTable(table));
      },
    };
  });
}

/** The methods of a table bound to it, so that a mutant can replace single ones. */
function bound(table: StateTable): StateTable {
  return {
    spec: table.spec,
    peek: (...all) => table.peek(...all),
    multiGet: (keys) => table.multiGet(keys),
    write: (batch) => table.write(batch),
    scan: (range) => table.scan(range),
    snapshot: (checkpoint) => table.snapshot(checkpoint),
    stats: () => table.stats(),
    close: () => table.close(),
  };
}

/** A copy of a batch with some entries changed or left out. */
function rewritten(
  batch: WriteBatch,
  change: (entry: [Uint8Array, Uint8Array | undefined, number]) => typeof entry | undefined,
): WriteBatch {
  const entries: [Uint8Array, Uint8Array | undefined, number][] = [];
  for (let i = 0; i < batch.count; i++) {
    const key = batch.arena.bytes.slice(batch.keyStart(i), batch.valueStart(i));
    const value = batch.isDelete(i) ? undefined : batch.arena.bytes.slice(batch.valueStart(i), batch.valueEnd(i));
    const entry = change([key, value, batch.expiresAtMs(i)]);
    if (entry !== undefined) entries.push(entry);
  }
  return batchOf(entries);
}

const mutants: Readonly<Record<string, OpenStateStore>> = {
  'writes are applied a tick late': mutant((table) => ({
    write: async (batch) => {
      const copy = rewritten(batch, (entry) => entry);
      await Promise.resolve();
      await table.write(copy);
    },
  })),
  'the batch is kept and read later': mutant((table) => ({
    write: async (batch) => {
      await Promise.resolve();
      await table.write(batch);
    },
  })),
  'deletes are forgotten': mutant((table) => ({
    write: (batch) => table.write(rewritten(batch, (entry) => (entry[1] === undefined ? undefined : entry))),
  })),
  'empty values are dropped': mutant((table) => ({
    write: (batch) => table.write(rewritten(batch, (entry) => (entry[1]?.length === 0 ? undefined : entry))),
  })),
  'large values are cut off': mutant((table) => ({
    write: (batch) =>
      table.write(rewritten(batch, ([key, value, expiry]) => [key, value?.subarray(0, 65_536), expiry])),
  })),
  'expiry is ignored': mutant((table) => ({
    write: (batch) => table.write(rewritten(batch, ([key, value]) => [key, value, 0])),
  })),
  'entries expire a millisecond early': mutant((table) => ({
    write: (batch) =>
      table.write(rewritten(batch, ([key, value, expiry]) => [key, value, expiry === 0 ? 0 : expiry - 1])),
  })),
  'absent keys are answered as empty values': mutant((table) => ({
    multiGet: async (keys) => ({ ...(await table.multiGet(keys)), present: new Uint8Array(keys.count).fill(1) }),
  })),
  'values come in the wrong order': mutant((table) => ({
    multiGet: async (keys) => {
      const found = await table.multiGet(keys);
      const values = Array.from({ length: found.count }, (_, i) =>
        found.present[i] === 0 ? undefined : found.bytes.slice(found.offsets[i], found.offsets[i + 1]),
      );
      return packValues(values.toReversed());
    },
  })),
  'peek says absent for what it does not know': mutant(() => ({ peek: () => 'absent' })),
  'a scan begins when it is first read': mutant((table) => ({
    scan: (range) =>
      (async function* () {
        yield* table.scan(range);
      })(),
  })),
  'a scan includes its end': mutant((table) => ({
    scan: ({ start, end, ...rest }) =>
      table.scan({ start, end: end === undefined ? end : Uint8Array.of(...end, 0), ...rest }),
  })),
  'a scan ignores the page size': mutant((table) => ({ scan: ({ start, end }) => table.scan({ start, end }) })),
  'a scan stops after its first page': mutant((table) => ({
    scan: (range) => {
      const pages = table.scan(range);
      return (async function* () {
        for await (const page of pages) return yield page;
      })();
    },
  })),
  'a snapshot is taken a tick late': mutant((table) => ({
    snapshot: async (checkpoint) => {
      await Promise.resolve();
      return table.snapshot(checkpoint);
    },
  })),
  'a snapshot is not durable as of its call: it is the first one again': mutant((table) => {
    let first: Promise<SnapshotHandle> | undefined;
    return { snapshot: (checkpoint) => (first ??= table.snapshot(checkpoint)) };
  }),
  'restored tables are not clipped': mutant(
    () => ({}),
    (spec, handles) => [handles.length === 0 ? spec : { ...spec, keyGroups: { start: 0, end: 127 } }, handles],
  ),
  'only the first handle is restored': mutant(
    () => ({}),
    (spec, handles) => [spec, handles.slice(0, 1).map((handle) => ({ ...handle, keyGroups: spec.keyGroups }))],
  ),
  'uncovered key groups are taken for empty': mutant(
    () => ({}),
    (spec, handles) => [spec, handles.map((handle) => ({ ...handle, keyGroups: { start: 0, end: 127 } }))],
  ),
  'nobody is fenced': mutant(
    () => ({}),
    (spec, handles) => [{ ...spec, generation: 1 }, handles],
  ),
  'each subtask fences the others': (() => {
    let generation = 0;
    return mutant(
      () => ({}),
      (spec, handles) => [{ ...spec, generation: ++generation }, handles],
    );
  })(),
  'all operators share one table': (() => {
    const tables = new Map<string, Promise<StateTable>>();
    return fixtureOf((clock) => {
      const store = new MemoryStateStore(clock);
      return {
        name: store.name,
        close: () => store.close(),
        openTable: (spec, handles) => {
          if (handles.length > 0) return store.openTable(spec, handles);
          const key = `${clock.nowMs()} ${spec.keyGroups.start}`;
          if (!tables.has(key)) tables.set(key, store.openTable(spec, handles));
          return tables.get(key) as Promise<StateTable>;
        },
      };
    });
  })(),
  'a closed table goes on': mutant(() => ({ close: () => Promise.resolve() })),
  'a snapshot waits until all that is written while it is taken is in it': mutant((table) => ({
    snapshot: async (checkpoint) => {
      for (let turn = 0; turn < 20; turn++) await Promise.resolve();
      return table.snapshot(checkpoint);
    },
  })),
  'a table opened again in one generation goes on where the last one was': (() => {
    const left = new WeakMap<object, StateTable>();
    return fixtureOf((clock) => {
      const store = new MemoryStateStore(clock);
      return {
        name: store.name,
        close: () => store.close(),
        async openTable(spec, handles) {
          const kept = left.get(clock);
          if (kept !== undefined && spec.generation === kept.spec.generation && handles.length > 0) return kept;
          const table = await store.openTable(spec, handles);
          left.set(clock, table);
          return Object.assign(Object.create(table) as StateTable, bound(table), { close: () => Promise.resolve() });
        },
      };
    });
  })(),
  'the handle names another operator': mutant((table) => ({
    snapshot: async (checkpoint) => ({ ...(await table.snapshot(checkpoint)), operator: '' }),
  })),
};

/** The case that catches each fault; others may, too. */
const catchers: Readonly<Record<keyof typeof mutants, string>> = {
  'writes are applied a tick late': 'a value is read in the same tick as it was written',
  'the batch is kept and read later': 'a batch may be reused as soon as write has returned',
  'deletes are forgotten': 'a deleted key stays deleted, and can be written again',
  'empty values are dropped': 'empty values are values, and keys may be prefixes of each other',
  'large values are cut off': 'large values beside small ones: written, overwritten, scanned and restored whole',
  'expiry is ignored': 'an expired entry hides the older value beneath it',
  'entries expire a millisecond early': 'an entry is gone at its expiry and not before',
  'absent keys are answered as empty values': 'an empty table has nothing',
  'values come in the wrong order': 'values come in the order of the keys asked, repeated and absent ones included',
  'peek says absent for what it does not know': 'peek is right when it answers, and finds values of other tables never',
  'a scan begins when it is first read': 'a scan shows the table as of its call, whatever is written while it runs',
  'a scan includes its end': 'a scan gives the range, in byte order, end excluded',
  'a scan ignores the page size': 'a scan comes in pages of at most the asked size, none empty',
  'a scan stops after its first page': 'a scan comes in pages of at most the asked size, none empty',
  'a snapshot is taken a tick late': 'a snapshot holds exactly the writes before it, those of the same tick included',
  'a snapshot is not durable as of its call: it is the first one again':
    'each snapshot stays as it was while newer ones are taken',
  'restored tables are not clipped': 'state follows its key groups from 1 to 3 to 2 subtasks and back',
  'only the first handle is restored': 'state follows its key groups from 1 to 3 to 2 subtasks and back',
  'uncovered key groups are taken for empty': 'a restore that leaves key groups uncovered is refused, naming one',
  'nobody is fenced': 'an older generation is fenced once a newer one has opened the table',
  'each subtask fences the others': 'subtasks of one generation do not fence each other, nor do other operators',
  'all operators share one table': 'tables are apart: by operator and by job',
  'a closed table goes on': 'close is idempotent, and calls after it are refused',
  'a snapshot waits until all that is written while it is taken is in it':
    'a snapshot of thousands of entries holds none of the writes that come while it is taken',
  'a table opened again in one generation goes on where the last one was':
    'a table that is opened again in the same generation begins with its snapshot and nothing else',
  'the handle names another operator': 'a handle says whose it is, is plain JSON, and small',
};

test.each(Object.entries(mutants))('the suite catches a store in which %s', async (fault, open) => {
  const failed: string[] = [];
  for (const one of stateStoreCases) {
    try {
      await runStateStoreCase(one, open);
    } catch {
      failed.push(one.name);
    }
  }
  expect(failed).toContain(catchers[fault]);
  // A fault that fails everything would say nothing about the cases.
  expect(failed.length).toBeLessThan(stateStoreCases.length);
});
