import type { Dfs } from '@millrace/dfs';
import type { Clock, Timer } from '@millrace/kernel';
import { MillraceError } from '@millrace/kernel';
import type { RetainedSnapshots } from '@millrace/state';
import type { Telemetry } from '@millrace/telemetry';
import { JobNamespace } from '@millrace/ufs';
import { markBytesMax, parseMark, type SnapshotsUnderWay } from './held-snapshots.ts';

export interface SnapshotSweepOptions {
  readonly dfs: Dfs;
  readonly store: string;
  readonly retained: RetainedSnapshots;
  readonly underWay: SnapshotsUnderWay;
  readonly intervalMs: number;
  /** How long a snapshot without a file that was never seen to have one is left alone. */
  readonly graceMs: number;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/**
 * Releases snapshots that nothing durable refers to: those whose file on the distributed file system is gone, and, after a
 * grace period, those that never got one. No proof, no release: a job whose record is not there is left alone, and so is
 * everything when the file system fails.
 */
export class SnapshotSweep {
  readonly #options: SnapshotSweepOptions;
  /** What files of jobs say, by path: they never change. Null for files that are something else. */
  readonly #marks = new Map<string, string | null>();
  /** Snapshots that had a file when last looked at, and when others were first seen without: by job and id. */
  readonly #marked = new Set<string>();
  readonly #bareSinceMs = new Map<string, number>();
  readonly #released: { add(value: number): void };
  #timer: Timer | undefined;
  #sweeping: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: SnapshotSweepOptions) {
    this.#options = options;
    this.#released = options.telemetry.metrics.counter(
      'millrace_state_service_snapshots_released_total',
      'Snapshots that no checkpoint, savepoint or fork needs any more, given back to the backend',
    );
  }

  start(): void {
    this.#timer = this.#options.clock.schedule(this.#options.intervalMs, () => {
      this.#sweeping = this.sweep().finally(() => {
        if (!this.#closed) this.start();
      });
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.#sweeping;
  }

  /** One look at all jobs; never rejects. */
  async sweep(): Promise<void> {
    try {
      for (const job of await this.#options.retained.jobs()) {
        if (this.#closed) return;
        await this.#sweepJob(job);
      }
    } catch (error) {
      const { message } = MillraceError.from(error);
      this.#options.telemetry.log.warn('snapshots were not looked through; nothing was released', { error: message });
    }
  }

  async #sweepJob(job: string): Promise<void> {
    const { dfs, retained, underWay } = this.#options;
    if (underWay.has(job)) return;
    // Listed before the files: a snapshot made meanwhile is not judged.
    const snapshots = await retained.list(job);
    if (snapshots.length === 0) return;
    const namespace = new JobNamespace(job);
    if (!(await hasAny(dfs, `${namespace.recordDirectory}/`))) return;
    const held = await this.#heldSnapshots(namespace);
    if (underWay.has(job)) return;
    for (const snapshot of snapshots) {
      const name = JSON.stringify([job, snapshot]);
      if (held.has(snapshot)) {
        this.#marked.add(name);
        this.#bareSinceMs.delete(name);
      } else if (this.#mayGo(name)) {
        await retained.release(job, snapshot);
        this.#marked.delete(name);
        this.#bareSinceMs.delete(name);
        this.#released.add(1);
      }
    }
  }

  async #heldSnapshots(namespace: JobNamespace): Promise<ReadonlySet<string>> {
    const { dfs, store } = this.#options;
    const held = new Set<string>();
    const seen = new Set<string>();
    for await (const { path, sizeBytes } of dfs.list(namespace.filesPrefix)) {
      seen.add(path);
      let snapshot = this.#marks.get(path);
      if (snapshot === undefined) {
        const bytes = sizeBytes > markBytesMax ? undefined : await dfs.readAll(path);
        if (bytes === undefined && sizeBytes <= markBytesMax) continue; // removed meanwhile
        const mark = bytes === undefined ? undefined : parseMark(bytes);
        snapshot = mark?.store === store && mark.snapshotOf === namespace.jobId ? mark.snapshot : null;
        this.#marks.set(path, snapshot);
      }
      if (snapshot !== null) held.add(snapshot);
    }
    for (const path of this.#marks.keys()) {
      if (path.startsWith(namespace.filesPrefix) && !seen.has(path)) this.#marks.delete(path);
    }
    return held;
  }

  #mayGo(name: string): boolean {
    if (this.#marked.has(name)) return true;
    const nowMs = this.#options.clock.monotonicMs();
    const sinceMs = this.#bareSinceMs.get(name) ?? nowMs;
    this.#bareSinceMs.set(name, sinceMs);
    return nowMs - sinceMs >= this.#options.graceMs;
  }
}

async function hasAny(dfs: Dfs, prefix: string): Promise<boolean> {
  for await (const _ of dfs.list(prefix)) return true;
  return false;
}
