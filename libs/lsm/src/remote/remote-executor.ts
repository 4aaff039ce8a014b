/**
 * Merges elsewhere, so that the slot's processor is left to records. The owner of the table stays the only one who
 * publishes: what a compactor makes are files without a holder, named under a delegation that tells whose they are, and they
 * become part of the table when the answer is here. So a compactor may die, be slow, come back from the dead or do what
 * another has done already: its files are never read, and they are removed here, or by the sweep once the attempt is
 * over. When nobody answers in time, or the answer is wrong, the merge is done here.
 */
import { type Clock, isKind, MillraceError, type Timer } from '@millrace/kernel';
import type { Telemetry, TraceContext } from '@millrace/telemetry';
import type { DelegatingFileStore, FileDelegation, FileRef } from '@millrace/ufs';
import type { BackgroundExecutor, FlushTask, MergeTask } from '../background/executor.ts';
import type { TableInfo } from '../sst/table-info.ts';
import { mergeToJson, tablesFromJson } from './merge-json.ts';
import type { MergeService } from './merge-service.ts';

export interface RemoteExecutorLimits {
  /** Smaller merges are done here: they cost less than asking. */
  readonly bytesMin: number;
  /** Merges of more tables are done here: their description would be too large to send. */
  readonly tablesMax: number;
  /** A merge is given up after `baseMs` and the time that its bytes take at `bytesPerSecondMin`. */
  readonly baseMs: number;
  readonly bytesPerSecondMin: number;
  /** After a failure merges are done here for so long. */
  readonly pauseMs: number;
  /** What was given up is cleaned up at once, and again after so long: who worked on it may have gone on. */
  readonly lateMs: number;
}

export const defaultRemoteExecutorLimits: RemoteExecutorLimits = {
  bytesMin: 1024 * 1024,
  tablesMax: 2000,
  baseMs: 15_000,
  bytesPerSecondMin: 4 * 1024 * 1024,
  pauseMs: 30_000,
  lateMs: 600_000,
};

export interface RemoteExecutorOptions {
  readonly service: MergeService;
  /** Flushes, and merges that are not done elsewhere; closed with this. */
  readonly local: BackgroundExecutor;
  readonly files: DelegatingFileStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly limits?: RemoteExecutorLimits;
}

export interface RemoteExecutorStats {
  readonly remoteMerges: number;
  readonly remoteBytesRead: number;
  /** Merges done here because nobody else did them. */
  readonly fallbacks: number;
  /** Files removed that compactors had made in vain. */
  readonly filesCleaned: number;
}

export class RemoteExecutor implements BackgroundExecutor {
  readonly #options: RemoteExecutorOptions;
  readonly #limits: RemoteExecutorLimits;
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<unknown>>();
  readonly #late = new Map<FileDelegation, Timer>();
  readonly #stopGauges: ReadonlyArray<() => void>;
  readonly #stats = { remoteMerges: 0, remoteBytesRead: 0, fallbacks: 0, filesCleaned: 0 };
  /** Until then nobody is asked. */
  #pausedUntilMs = 0;

  constructor(options: RemoteExecutorOptions) {
    this.#options = options;
    this.#limits = options.limits ?? defaultRemoteExecutorLimits;
    const { metrics } = options.telemetry;
    const stats = this.#stats;
    this.#stopGauges = [
      metrics.gauge('millrace_lsm_remote_merges', 'Merges done by compactors', () => stats.remoteMerges),
      metrics.gauge('millrace_lsm_remote_merge_bytes', 'Bytes of their inputs', () => stats.remoteBytesRead),
      metrics.gauge('millrace_lsm_remote_fallbacks', 'Merges that no compactor did in time', () => stats.fallbacks),
      metrics.gauge(
        'millrace_lsm_remote_cleaned',
        'Files removed that compactors made in vain',
        () => stats.filesCleaned,
      ),
    ];
  }

  get stats(): RemoteExecutorStats {
    return this.#stats;
  }

  flush(task: FlushTask, parent?: TraceContext): Promise<readonly TableInfo[]> {
    return this.#options.local.flush(task, parent);
  }

  merge(task: MergeTask, parent?: TraceContext): Promise<readonly TableInfo[]> {
    const tables = task.runs.flat().map(({ info }) => info);
    const bytes = tables.reduce((sum, { file }) => sum + file.sizeBytes, 0);
    const isPaused = this.#options.clock.monotonicMs() < this.#pausedUntilMs;
    if (isPaused || bytes < this.#limits.bytesMin || tables.length > this.#limits.tablesMax) {
      return this.#options.local.merge(task, parent);
    }
    const merging = this.#merge(task, bytes, parent).finally(() => this.#running.delete(merging));
    this.#running.add(merging);
    return merging;
  }

  discard(files: readonly FileRef[]): void {
    const { local, files: store } = this.#options;
    const [ours, theirs] = [files.filter((file) => !store.made(file)), files.filter((file) => store.made(file))];
    if (ours.length > 0) local.discard(ours);
    if (theirs.length > 0) store.discard(theirs);
  }

  async close(): Promise<void> {
    this.#closing.abort(closed());
    this.#options.service.close();
    for (const stop of this.#stopGauges) stop();
    // What late compactors leave from now on is the sweep's: the attempt is over.
    for (const timer of this.#late.values()) timer.cancel();
    this.#late.clear();
    await this.#options.local.close();
    await Promise.allSettled(this.#running);
  }

  async #merge(task: MergeTask, bytes: number, parent: TraceContext | undefined): Promise<readonly TableInfo[]> {
    const { service, local, files, telemetry, clock } = this.#options;
    const output = files.delegate();
    try {
      const timeoutMs = Math.ceil(this.#limits.baseMs + (bytes / this.#limits.bytesPerSecondMin) * 1000);
      const request = { merge: mergeToJson(task), output, timeoutMs, parent };
      const answer = await service.merge(request, this.#closing.signal);
      const tables = tablesFromJson(answer.tables, task);
      if (!tables.every(({ file }) => file.id.startsWith(output.prefix))) throw foreign();
      this.#stats.remoteMerges++;
      this.#stats.remoteBytesRead += bytes;
      if (answer.attempts > 1) this.#cleanUp(output, tables);
      return tables;
    } catch (error) {
      this.#cleanUp(output, []);
      const { aborted, reason } = this.#closing.signal;
      if (aborted) throw reason as MillraceError;
      const failure = MillraceError.from(error, 'compaction-failed');
      telemetry.log.warn('a compaction is done here', { code: failure.code, error: failure.message });
      this.#stats.fallbacks++;
      this.#pausedUntilMs = clock.monotonicMs() + this.#limits.pauseMs;
      return await local.merge(task, parent);
    }
  }

  /** Removes what was made in vain, now and once more when even a slow compactor has stopped. */
  #cleanUp(output: FileDelegation, kept: readonly TableInfo[]): void {
    void this.#removeAllBut(output, kept);
    if (this.#closing.signal.aborted) return;
    const timer = this.#options.clock.schedule(this.#limits.lateMs, () => {
      this.#late.delete(output);
      void this.#removeAllBut(output, kept);
    });
    this.#late.set(output, timer);
  }

  async #removeAllBut(output: FileDelegation, kept: readonly TableInfo[]): Promise<void> {
    const { files, telemetry } = this.#options;
    try {
      const keep = kept.map((table) => table.file);
      this.#stats.filesCleaned += await files.discardDelegated(output, keep);
    } catch (error) {
      // They have no holder: the sweep takes them when the attempt is over.
      if (!isKind(error, 'cancelled'))
        telemetry.log.warn('files of compactors are left to the sweep', { error: String(error) });
    }
  }
}

function closed(): MillraceError {
  return new MillraceError('lsm-closed', 'the table was closed while it was compacted');
}

function foreign(): MillraceError {
  return new MillraceError('compaction-failed', 'the answer of a compactor names files that it was not asked to make');
}
