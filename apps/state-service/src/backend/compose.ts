/** Composition root of the backends: which store a state-service serves. */
import type { Dfs } from '@millrace/dfs';
import type { Clock, Random } from '@millrace/kernel';
import { type BackgroundExecutor, defaultLsmLimits } from '@millrace/lsm';
import { Generations, MemoryStateStore, type StateStore } from '@millrace/state';
import { openLsmStore } from '@millrace/state-lsm';
import type { Telemetry } from '@millrace/telemetry';
import { type JobStorage, openJobStorage } from '@millrace/ufs';
import { HeldSnapshots } from './held-snapshots.ts';
import { JobStores } from './job-stores.ts';
import { SnapshotSweep } from './snapshot-sweep.ts';

export interface LsmBackendOptions {
  readonly dfs: Dfs;
  readonly random: Random;
  /** Time of the state: what has expired. */
  readonly clock: Clock;
  /** Time of retries and timeouts. */
  readonly systemClock: Clock;
  readonly telemetry: Telemetry;
  /** Block cache of one attempt. */
  readonly cacheBytes: number;
  /** One memtable of one table. */
  readonly memtableBytes: number;
  readonly executor: (storage: JobStorage, job: string, generation: number) => BackgroundExecutor;
}

/** Tables on the distributed file system, those of one attempt in one LSM store. */
export function lsmBackend(options: LsmBackendOptions): StateStore {
  const { dfs, random, clock, systemClock, telemetry, cacheBytes, memtableBytes, executor } = options;
  const generations = new Generations();
  const limits = { ...defaultLsmLimits, memtableBytes };
  return new JobStores({
    name: 'lsm',
    open: async (job, generation) => {
      const storage = openJobStorage({ dfs, jobId: job, generation, clock: systemClock, random, telemetry });
      const { files, holders, namespace } = storage;
      const store = openLsmStore({
        files,
        holders,
        namespace,
        executor: executor(storage, job, generation),
        cacheBytes,
        limits,
        generations,
        clock,
        telemetry,
      });
      return {
        store,
        close: async () => {
          await store.close();
          await storage.close();
        },
      };
    },
  });
}

/** For tests of jobs: ends with the process. */
export function memoryBackend(clock: Clock): StateStore {
  return new MemoryStateStore(clock);
}

export interface RetainedBackendOptions {
  readonly store: StateStore;
  readonly dfs: Dfs;
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
  /** How often released snapshots are looked for, and how long one that nobody ever held is left alone. */
  readonly sweepIntervalMs?: number;
  readonly sweepGraceMs?: number;
}

/** A backend of another make; when it keeps its snapshots itself, under the retention of their jobs. */
export function retainedBackend(options: RetainedBackendOptions): StateStore {
  const { store, dfs, clock, random, telemetry, sweepIntervalMs = 5000, sweepGraceMs = 60_000 } = options;
  const { retained } = store;
  if (retained === undefined) return store;
  const held = new HeldSnapshots({
    store,
    instance: random.hex(6),
    openStorage: (job, generation) => openJobStorage({ dfs, jobId: job, generation, clock, random, telemetry }),
  });
  const { underWay } = held;
  const timing = { intervalMs: sweepIntervalMs, graceMs: sweepGraceMs };
  const sweep = new SnapshotSweep({ dfs, store: store.name, retained, underWay, ...timing, clock, telemetry });
  sweep.start();
  return {
    name: held.name,
    openTable: (...all) => held.openTable(...all),
    close: async () => {
      await sweep.close();
      await held.close();
    },
  };
}
