import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemRandom as random } from '@millrace/kernel';
import type { StateStore } from '@millrace/state';
import { stateStoreConformance } from '@millrace/state/testing';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import { openKvStore, rocksDbEngine } from './index.ts';

stateStoreConformance('kv on rocksdb', async (clock) => {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-kv-'));
  const stores: StateStore[] = [];
  const another = async (): Promise<StateStore> => {
    const engine = rocksDbEngine({ memtableBytes: 1 << 20 });
    const store = await openKvStore({ directory, engine, sweepEntriesPerSecond: 1000, clock, random, telemetry });
    stores.push(store);
    return store;
  };
  return {
    store: await another(),
    another,
    close: async () => {
      await Promise.all(stores.map((store) => store.close()));
      rmSync(directory, { recursive: true, force: true });
    },
  };
});
