import type { FileCache } from '@millrace/cache';
import type { Dfs } from '@millrace/dfs';
import type { Clock, Random } from '@millrace/kernel';
import type { Telemetry } from '@millrace/telemetry';
import type { FileDelegation } from './file-id.ts';
import { Holders } from './holders.ts';
import { JobFiles } from './job-files.ts';
import { JobNamespace } from './namespace.ts';
import { Reaper } from './reaper.ts';

export interface JobStorageOptions {
  readonly dfs: Dfs;
  readonly jobId: string;
  readonly generation: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
  /** For a process that makes files on behalf of another. */
  readonly delegation?: FileDelegation | undefined;
  /** Copies of the job's files, nearer than the Dfs; closed by who opened it. */
  readonly cache?: FileCache | undefined;
}

/** What one process of one attempt needs of the unified file system. `close` drains the reaper, not the Dfs. */
export interface JobStorage {
  readonly dfs: Dfs;
  readonly namespace: JobNamespace;
  readonly files: JobFiles;
  readonly holders: Holders;
  readonly reaper: Reaper;
  close(): Promise<void>;
}

export function openJobStorage(options: JobStorageOptions): JobStorage {
  const { dfs, clock, random, generation, delegation, cache } = options;
  const namespace = new JobNamespace(options.jobId);
  const reaper = new Reaper(options);
  return {
    dfs,
    namespace,
    files: new JobFiles({ dfs, namespace, generation, reaper, clock, random, delegation, cache }),
    holders: new Holders(dfs),
    reaper,
    close: () => reaper.close(),
  };
}
