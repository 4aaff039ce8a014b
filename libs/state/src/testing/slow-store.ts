import type { Random } from '@millrace/kernel';
import type { PackedValues } from '../packed.ts';
import type { ScanPage, StateStore, StateTable } from '../store.ts';

/** Some turns of the microtask queue later. */
async function later(random: Random): Promise<void> {
  for (let turns = random.below(8); turns > 0; turns--) await Promise.resolve();
}

/**
 * A store as a remote one behaves: `peek` mostly does not know, answers come later and out of order, writes push back.
 * What is read is still what was there at the call.
 */
export function slowStore(store: StateStore, random: Random): StateStore {
  return {
    name: store.name,
    openTable: async (spec, restore, parent) => slowTable(await store.openTable(spec, restore, parent), random),
    close: () => store.close(),
  };
}

function slowTable(table: StateTable, random: Random): StateTable {
  const delayed = async <T>(value: T): Promise<Awaited<T>> => {
    // Attached at once, so that a rejection is never unhandled while it waits.
    const settled = Promise.resolve(value);
    await Promise.allSettled([settled, later(random)]);
    return settled as Promise<Awaited<T>>;
  };
  return {
    spec: table.spec,
    peek: (...all) => (random.below(4) === 0 ? table.peek(...all) : 'unknown'),
    multiGet: (keys, parent) => delayed(table.multiGet(keys, parent)) as Promise<PackedValues>,
    write: (batch) => {
      const writing = table.write(batch);
      return random.below(2) === 0 ? writing : (delayed(writing) as Promise<void>);
    },
    scan: (range, parent) => {
      const pages = table.scan({ pageEntriesMax: 1 + random.below(4), ...range }, parent);
      return (async function* (): AsyncGenerator<ScanPage> {
        for await (const page of pages) {
          await later(random);
          yield page;
        }
      })();
    },
    snapshot: (checkpoint, parent) => delayed(table.snapshot(checkpoint, parent)),
    stats: () => table.stats(),
    close: () => table.close(),
  };
}
