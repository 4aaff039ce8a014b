import { join } from 'node:path';
import { openDfs } from '@millrace/dfs';
import { systemClock as clock, systemRandom as random } from '@millrace/kernel';
import { defaultLsmLimits, inlineExecutor } from '@millrace/lsm';
import type { StateStore } from '@millrace/state';
import { openLsmStore } from '@millrace/state-lsm';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import { openJobStorage } from '@millrace/ufs';

const mib = 1024 * 1024;

/** State of one job in the LSM on a local directory: a store for each attempt, over the same files. */
export class LsmStores implements AsyncDisposable {
  readonly #directory: string;
  readonly #jobId: string;
  readonly #closes: (() => Promise<void>)[] = [];

  constructor(directory: string, jobId: string) {
    this.#directory = join(directory, 'state');
    this.#jobId = jobId;
  }

  /** The store of an attempt. Those of earlier ones stay open, as those of a runner that is cut off would. */
  async open(generation: number): Promise<StateStore> {
    const dfs = await openDfs(this.#directory, { clock, random, telemetry });
    const storage = openJobStorage({ dfs, jobId: this.#jobId, generation, clock, random, telemetry });
    const store = openLsmStore({
      files: storage.files,
      holders: storage.holders,
      namespace: storage.namespace,
      executor: inlineExecutor(storage.files),
      cacheBytes: 128 * mib,
      limits: { ...defaultLsmLimits, memtableBytes: 16 * mib },
      clock,
      telemetry,
    });
    this.#closes.push(
      () => store.close(),
      () => storage.close(),
      () => dfs.close(),
    );
    return store;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#closes.splice(0)) await close();
  }
}
