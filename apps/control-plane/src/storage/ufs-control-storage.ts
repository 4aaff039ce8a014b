import type { Dfs } from '@millrace/dfs';
import { type Clock, MillraceError, type Random, Semaphore } from '@millrace/kernel';
import type { CheckpointContents, CheckpointEntry, JobRecord } from '@millrace/proto/control';
import type { Telemetry, TraceContext } from '@millrace/telemetry';
import {
  type EraseReport,
  eraseJob,
  FencedObject,
  type Fork,
  type Holder,
  Holders,
  JobNamespace,
  Reaper,
  type SweepReport,
  settleOrigins,
  sweepForkPins,
} from '@millrace/ufs';
import type { ControlStorage, JobGeneration } from './control-storage.ts';
import { type ForkJob, forkJob } from './fork-job.ts';
import { HolderCache } from './holder-cache.ts';
import { holdersOf } from './holders-of.ts';
import { StoredRecords } from './job-records.ts';
import { checkpointHolderPath, JobRetention } from './job-retention.ts';

export interface UfsControlStorageOptions {
  readonly dfs: Dfs;
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
}

/** Versions of a record that stay for whoever reads while others write. */
const versionsKept = 16;
const requestsMax = 32;

/** ControlStorage on the unified file system. */
export class UfsControlStorage implements ControlStorage {
  readonly #options: UfsControlStorageOptions;
  readonly #holders: Holders;
  readonly #retention: JobRetention;
  readonly #reaper: Reaper;
  readonly #records: StoredRecords;

  constructor(options: UfsControlStorageOptions) {
    this.#options = options;
    this.#holders = new Holders(options.dfs);
    // The Dfs has its own retries, and whoever asks comes again: a refused removal must not hold up the others.
    this.#reaper = new Reaper({ ...options, attemptsMax: 1 });
    const snapshotsOf = async (entry: CheckpointEntry): Promise<readonly string[]> =>
      holdersOf(await this.readCheckpoint(entry.path));
    this.#records = new StoredRecords({ storage: this, snapshotsOf });
    this.#retention = new JobRetention({
      dfs: options.dfs,
      clock: options.clock,
      holders: new HolderCache(this.#holders),
      reaper: this.#reaper,
      snapshotsOf,
      snapshotsLeftOf: (entry) => this.#snapshotsLeftOf(entry.path),
    });
  }

  async readRecord(id: string): Promise<JobRecord | undefined> {
    return (await this.#record(id).latest())?.value;
  }

  async claimRecord(
    id: string,
    claimant: string,
    change: (record: JobRecord | undefined, generation: number) => JobRecord,
  ): Promise<JobRecord> {
    return (await this.#record(id).claim({ claimant, change })).value;
  }

  async updateRecord(
    owner: JobGeneration,
    change: (record: JobRecord | undefined) => JobRecord,
    parent?: TraceContext,
  ): Promise<JobRecord> {
    const { generation } = owner;
    return (await this.#record(owner.id).update(change, { generation, parent })).value;
  }

  async collectRecord(id: string): Promise<void> {
    await this.#record(id).collect(versionsKept, this.#reaper);
  }

  checkpointPath(id: string, checkpoint: number, generation: number): string {
    return new JobNamespace(id).checkpointPath(checkpoint, generation);
  }

  async writeCheckpoint(path: string, contents: CheckpointContents, parent?: TraceContext): Promise<void> {
    await this.#options.dfs.put(path, new TextEncoder().encode(`${JSON.stringify(contents)}\n`), parent);
  }

  async readCheckpoint(path: string, parent?: TraceContext): Promise<CheckpointContents> {
    const contents = await this.#findCheckpoint(path, parent);
    if (contents !== undefined) return contents;
    throw new MillraceError('job-record-broken', `Checkpoint ${path} does not exist.`, { details: { path } });
  }

  async missingHolder(contents: CheckpointContents): Promise<string | undefined> {
    const limit = new Semaphore(requestsMax);
    const holders = holdersOf(contents);
    const found = await Promise.all(holders.map((path) => limit.run(() => this.#holders.exists(path))));
    return holders.find((_, i) => found[i] === false);
  }

  async hold(contents: CheckpointContents, parent?: TraceContext): Promise<void> {
    const { id, checkpoint, generation } = contents;
    const holder: Holder = { generation, files: [], value: { checkpoint, snapshots: holdersOf(contents) } };
    await this.#holders.put(checkpointHolderPath(id, checkpoint, generation), holder, parent);
  }

  drop(
    id: string,
    dropped: readonly CheckpointEntry[],
    live: readonly CheckpointEntry[],
  ): Promise<readonly CheckpointEntry[]> {
    return this.#retention.drop(id, dropped, live);
  }

  async sweep(id: string, graceMs: number): Promise<SweepReport | undefined> {
    const record = await this.readRecord(id);
    if (record === undefined) return undefined;
    const report = await this.#retention.sweep(record, graceMs);
    const source = { dfs: this.#options.dfs, namespace: new JobNamespace(id), holders: this.#holders };
    const live = await this.#records.holdersOf(record);
    await settleOrigins(source, this.#reaper, this.#records, { claim: record.fork?.claim, live });
    await sweepForkPins(source, this.#reaper, this.#records, { graceMs, nowMs: this.#options.clock.nowMs() });
    return report;
  }

  fork(wanted: ForkJob): Promise<Pick<Fork, 'files' | 'bytesLinked'>> {
    return forkJob({ dfs: this.#options.dfs, storage: this, records: this.#records }, wanted);
  }

  async erase(id: string): Promise<EraseReport> {
    const source = { dfs: this.#options.dfs, namespace: new JobNamespace(id), holders: this.#holders };
    return await eraseJob(source, this.#reaper, this.#records);
  }

  async discardRound(id: string, checkpoint: number, generation: number): Promise<void> {
    const path = this.checkpointPath(id, checkpoint, generation);
    await this.#removeInOrder([[checkpointHolderPath(id, checkpoint, generation)], [path]]);
  }

  async #removeInOrder(steps: readonly (readonly string[])[]): Promise<boolean> {
    for (const paths of steps) {
      if ((await this.#reaper.removeNow(paths)).failed.length > 0) return false;
    }
    return true;
  }

  async #snapshotsLeftOf(path: string): Promise<readonly string[]> {
    const contents = await this.#findCheckpoint(path);
    return contents === undefined ? [] : holdersOf(contents);
  }

  async #findCheckpoint(path: string, parent?: TraceContext): Promise<CheckpointContents | undefined> {
    const bytes = await this.#options.dfs.readAll(path, parent);
    if (bytes === undefined) return undefined;
    try {
      return JSON.parse(new TextDecoder().decode(bytes)) as CheckpointContents;
    } catch (error) {
      throw new MillraceError('job-record-broken', `Checkpoint ${path} is not JSON.`, {
        cause: error,
        details: { path },
      });
    }
  }

  #record(id: string): FencedObject<JobRecord> {
    const { dfs, clock, random } = this.#options;
    return new FencedObject({ dfs, clock, random, directory: new JobNamespace(id).recordDirectory });
  }
}
