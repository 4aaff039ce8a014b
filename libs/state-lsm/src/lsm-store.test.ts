import { ManualClock } from '@millrace/kernel/testing';
import { defaultLsmLimits, inlineExecutor, type LsmLimits } from '@millrace/lsm';
import type { StateStore } from '@millrace/state';
import { type OpenStateStore, stateStoreConformance } from '@millrace/state/testing';
import { noTelemetry } from '@millrace/telemetry';
import { openLsmStore } from './index.ts';
import { MemoryHome } from './testing/memory-home.ts';

/** So small that every step of a table's life happens within a few writes. */
const tinyLimits: LsmLimits = {
  ...defaultLsmLimits,
  memtableBytes: 16 * 1024,
  pageBytes: 512,
  tables: { ...defaultLsmLimits.tables, blockBytes: 128, tableBytesMax: 2048 },
  compaction: { ...defaultLsmLimits.compaction, l0Runs: 2, levelBytes: 4096, levelFactor: 2, levelsMax: 4 },
};

function openOn(home: MemoryHome, clock: ManualClock, limits: LsmLimits, cacheBytes: number): StateStore {
  const { files, namespace } = home;
  const executor = inlineExecutor(files);
  return openLsmStore({ files, holders: home, namespace, executor, cacheBytes, limits, clock, telemetry: noTelemetry });
}

function fixtureOf(limits: LsmLimits, cacheBytes: number): OpenStateStore {
  return async (clock) => {
    const home = new MemoryHome();
    const stores = [openOn(home, clock, limits, cacheBytes)];
    return {
      store: stores[0] as StateStore,
      another: async () => {
        const store = openOn(home, clock, limits, cacheBytes);
        stores.push(store);
        return store;
      },
      close: async () => void (await Promise.all(stores.map((store) => store.close()))),
    };
  };
}

stateStoreConformance('lsm', fixtureOf(defaultLsmLimits, 1 << 20));
stateStoreConformance('lsm with tiny limits', fixtureOf(tinyLimits, 16 * 1024));
stateStoreConformance('lsm without a block cache', fixtureOf(tinyLimits, 0));
