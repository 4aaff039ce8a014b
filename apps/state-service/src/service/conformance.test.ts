import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDfs } from '@millrace/dfs';
import { type Clock, systemRandom as random, systemClock } from '@millrace/kernel';
import { inlineExecutor } from '@millrace/lsm';
import { MemoryStateStore, type StateStore } from '@millrace/state';
import { type OpenStateStore, stateStoreConformance } from '@millrace/state/testing';
import { type NamedStore, openShardedStore } from '@millrace/state-remote';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import { lsmBackend, retainedBackend } from '../backend/compose.ts';
import { loadBackend } from '../backend/load-backend.ts';
import { type ServedStore, serveStore } from '../testing/served-store.ts';

function served(open: (clock: Clock, home: string) => Promise<StateStore>): OpenStateStore {
  return async (clock) => {
    const home = mkdtempSync(join(tmpdir(), 'millrace-state-'));
    const all: ServedStore[] = [];
    const another = async (): Promise<StateStore> => {
      const one = await serveStore(await open(clock, home));
      all.push(one);
      return one.client;
    };
    return {
      store: await another(),
      another,
      close: async () => {
        await Promise.all(all.map((one) => one.close()));
        rmSync(home, { recursive: true, force: true });
      },
    };
  };
}

stateStoreConformance(
  'memory over gRPC',
  served(async (clock) => new MemoryStateStore(clock)),
);

stateStoreConformance(
  'lsm over gRPC',
  served(async (clock, home) => {
    const dfs = await openDfs(`file://${home}?fsync=false`, { clock: systemClock, random, telemetry });
    return lsmBackend({
      dfs,
      random,
      clock,
      systemClock,
      telemetry,
      cacheBytes: 1 << 20,
      memtableBytes: 64 * 1024,
      executor: ({ files }) => inlineExecutor(files),
    });
  }),
);

/** As a process serves it: loaded by name, its snapshots under the jobs' retention. */
async function kv(clock: Clock, home: string, instance = 'kv'): Promise<StateStore> {
  const dfs = await openDfs(`file://${home}/dfs?fsync=false`, { clock: systemClock, random, telemetry });
  const create = await loadBackend('kv', home);
  const store = await create({ directory: join(home, instance), options: {}, clock, random, telemetry });
  return retainedBackend({ store, dfs, clock: systemClock, random, telemetry });
}

stateStoreConformance(
  'kv over gRPC',
  served((clock, home) => kv(clock, home)),
);

stateStoreConformance('kv on two instances over gRPC', async (clock) => {
  const home = mkdtempSync(join(tmpdir(), 'millrace-state-'));
  const all: ServedStore[] = [];
  const stores: StateStore[] = [];
  const another = async (): Promise<StateStore> => {
    const instances: NamedStore[] = [];
    for (const name of ['a', 'b']) {
      const one = await serveStore(await kv(clock, home, name));
      all.push(one);
      instances.push({ name, store: one.client });
    }
    const store = openShardedStore(instances);
    stores.push(store);
    return store;
  };
  return {
    store: await another(),
    another,
    close: async () => {
      await Promise.all(stores.map((store) => store.close()));
      await Promise.all(all.map((one) => one.close()));
      rmSync(home, { recursive: true, force: true });
    },
  };
});
