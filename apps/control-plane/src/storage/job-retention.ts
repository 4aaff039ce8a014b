import type { Dfs } from '@millrace/dfs';
import type { Clock } from '@millrace/kernel';
import type { CheckpointEntry, JobRecord } from '@millrace/proto/control';
import { JobNamespace, type Reaper, retire, type SweepReport, sweepOrphans } from '@millrace/ufs';
import { liveCheckpoints } from '../record/transitions.ts';
import type { HolderCache } from './holder-cache.ts';

export interface JobRetentionOptions {
  readonly dfs: Dfs;
  readonly clock: Clock;
  readonly holders: HolderCache;
  readonly reaper: Reaper;
  /** The holder objects (tables' snapshots) that a registered checkpoint names; rejects when it cannot be read. */
  readonly snapshotsOf: (entry: CheckpointEntry) => Promise<readonly string[]>;
  /** As `snapshotsOf`; empty when its description is gone already. */
  readonly snapshotsLeftOf: (entry: CheckpointEntry) => Promise<readonly string[]>;
}

/**
 * Deletes what a job's record no longer needs, with the proofs that `@millrace/ufs` asks for: what lives is read first
 * and completely, and when any of it is missing, nothing is deleted.
 */
export class JobRetention {
  readonly #options: JobRetentionOptions;

  constructor(options: JobRetentionOptions) {
    this.#options = options;
  }

  /**
   * Removes what only `dropped` checkpoints hold, in this order and for a limited time. The answer are those that are
   * gone completely.
   */
  async drop(
    id: string,
    dropped: readonly CheckpointEntry[],
    kept: readonly CheckpointEntry[],
  ): Promise<readonly CheckpointEntry[]> {
    const { clock, reaper, snapshotsLeftOf } = this.#options;
    const untilMs = clock.monotonicMs() + dropLimitMs;
    const live = await this.#liveSnapshots(kept);
    const namespace = new JobNamespace(id);
    const gone: CheckpointEntry[] = [];
    for (const entry of dropped) {
      if (clock.monotonicMs() >= untilMs) break;
      const { failed } = await retire(this.#source(namespace), reaper, { dropped: await snapshotsLeftOf(entry), live });
      if (failed > 0) continue;
      // Order: what is held before what holds it, the description last; a crash in between is repeated from it.
      const holder = checkpointHolderPath(id, entry.checkpoint, entry.generation);
      if ((await reaper.removeNow([holder])).failed.length > 0) continue;
      if ((await reaper.removeNow([entry.path])).failed.length === 0) gone.push(entry);
    }
    return gone;
  }

  /** Removes what crashes, aborted rounds and dead attempts left. `record` was read before this call. */
  async sweep(record: JobRecord, graceMs: number): Promise<SweepReport> {
    const { clock, reaper } = this.#options;
    const nowMs = clock.nowMs();
    const namespace = new JobNamespace(record.id);
    const live = liveCheckpoints(record);
    const report = await sweepOrphans(this.#source(namespace), reaper, {
      liveHolders: await this.#liveSnapshots(live),
      // Given-up checkpoints are dropped by their descriptions, so these stay until that is done.
      liveCheckpoints: [...live, ...record.dropping].map((entry) => entry.path),
      liveGeneration: record.finished ? Number.POSITIVE_INFINITY : record.generation,
      settledCheckpoint: settledCheckpoint(record),
      graceMs,
      nowMs,
    });
    const { removed, failed } = await reaper.removeNow(await this.#deadHolders(namespace, record, nowMs - graceMs));
    const objectsRemoved = report.objectsRemoved + removed.length;
    return { ...report, objectsRemoved, failed: report.failed + failed.length };
  }

  /**
   * Checkpoints' holders of rounds that a dead attempt began, or that the running one has put behind it: they name no
   * files themselves, so nothing hangs on them.
   */
  async #deadHolders(namespace: JobNamespace, record: JobRecord, untilMs: number): Promise<readonly string[]> {
    const known = [...liveCheckpoints(record), ...record.dropping];
    const kept = new Set(known.map((entry) => checkpointHolderPath(record.id, entry.checkpoint, entry.generation)));
    const settled = settledCheckpoint(record) ?? 0;
    const dead: string[] = [];
    for await (const { path, modifiedMs } of this.#options.dfs.list(namespace.holdersPrefix)) {
      const name = checkpointHolderName.exec(path.slice(namespace.holdersPrefix.length));
      if (name === null || kept.has(path) || modifiedMs >= untilMs) continue;
      const [checkpoint, generation] = [Number(name[1]), Number(name[2])];
      const isOver = generation === record.generation && checkpoint < settled;
      if (isOver || generation < record.generation) dead.push(path);
    }
    return dead;
  }

  async #liveSnapshots(entries: readonly CheckpointEntry[]): Promise<readonly string[]> {
    return [...new Set((await Promise.all(entries.map((entry) => this.#options.snapshotsOf(entry)))).flat())];
  }

  #source(namespace: JobNamespace) {
    const { dfs, holders } = this.#options;
    return { dfs, namespace, holders };
  }
}

const checkpointHolderName = /^checkpoint-(\d{1,15})-g(\d{1,15})$/;

/** No other checkpoint is begun after this time. */
const dropLimitMs = 10_000;

/** The newest registered checkpoint of the newest generation: no earlier round of it can be registered any more. */
function settledCheckpoint(record: JobRecord): number | null {
  return record.checkpoints.findLast((entry) => entry.generation === record.generation)?.checkpoint ?? null;
}

/** The object by which a checkpoint holds its snapshots. */
export function checkpointHolderPath(id: string, checkpoint: number, generation: number): string {
  return new JobNamespace(id).holderPath(`checkpoint-${checkpoint}-g${generation}`);
}
