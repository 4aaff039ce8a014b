/** Composition root of the backends: which store a state-service serves. */
import type { Dfs } from '@millrace/dfs';
import type { Clock, Random } from '@millrace/kernel';
import { type BackgroundExecutor, defaultLsmLimits } from '@millrace/lsm';
import { Generations, MemoryStateStore, type StateStore } from '@millrace/state';
import { openLsmStore } from '@millrace/state-lsm';
import type { Telemetry } from '@millrace/telemetry';
import { type JobStorage, openJobStorage } from '@millrace/ufs';
import { JobStores } from './job-stores.ts';

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
