/**
 * The activity of a compactor. It publishes nothing: the files that it makes are named under the delegation of the table's
 * owner, no holder names them, and the owner uses them or removes them. A compactor can therefore be killed, stopped or
 * started twice in any moment.
 */
import type { Dfs } from '@millrace/dfs';
import { type Clock, MillraceError, type Random } from '@millrace/kernel';
import type { CompactionResult, CompactionTask, Json } from '@millrace/proto/control';
import type { Telemetry, TraceContext } from '@millrace/telemetry';
import { toFailure } from '@millrace/temporal';
import { type FileRef, type JobFiles, openJobStorage } from '@millrace/ufs';
import { Context } from '@temporalio/activity';
import type { CompactorMetrics } from './compactor-metrics.ts';
import { StallWatch } from './stall-watch.ts';

/** What a merge yields; as plain JSON it goes to the owner. */
type Tables = ReadonlyArray<{ readonly file: FileRef }>;

interface MergeOptions {
  readonly files: JobFiles;
  readonly signal: AbortSignal;
  readonly parent?: TraceContext | undefined;
}

export interface CompactActivityDeps {
  readonly dfs: Dfs;
  /** Does the merge that a task describes (`compact` of @millrace/lsm). */
  readonly merge: (description: Json, options: MergeOptions) => Promise<Tables>;
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
  readonly metrics: CompactorMetrics;
}

const heartbeatMs = 1000;

export class CompactActivity {
  readonly #deps: CompactActivityDeps;

  constructor(deps: CompactActivityDeps) {
    this.#deps = deps;
  }

  readonly compact = async (task: CompactionTask): Promise<CompactionResult> => {
    const context = Context.current();
    const { clock, telemetry, metrics } = this.#deps;
    const silenceMaxMs = context.info.heartbeatTimeoutMs ?? Number.POSITIVE_INFINITY;
    const watch = new StallWatch({ clock, intervalMs: heartbeatMs, silenceMaxMs, beat: () => context.heartbeat() });
    const attributes = { 'millrace.job': task.id, 'millrace.attempt': context.info.attempt };
    const done = metrics.begin();
    try {
      const tables = await telemetry.tracer.span('compaction', { parent: task.traceparent, attributes }, (span) =>
        this.#merge(task, watch, span.context),
      );
      done('done', tables);
      return { tables: tables as unknown as Json, attempt: context.info.attempt };
    } catch (error) {
      const isGivenUp = context.cancellationSignal.aborted || watch.signal.aborted;
      done(isGivenUp ? 'given-up' : 'failed', []);
      if (!isGivenUp)
        telemetry.log.warn('compaction failed', { job: task.id, error: MillraceError.from(error).message });
      // Rejects with what Temporal wants to see of a cancelled activity.
      if (context.cancellationSignal.aborted) await context.cancelled;
      throw toFailure(error);
    } finally {
      watch.stop();
    }
  };

  async #merge(task: CompactionTask, watch: StallWatch, parent: TraceContext | undefined): Promise<Tables> {
    const { dfs, merge, clock, random, telemetry } = this.#deps;
    const { id: jobId, generation, output: delegation } = task;
    const storage = openJobStorage({ dfs, jobId, generation, delegation, clock, random, telemetry });
    const signal = AbortSignal.any([Context.current().cancellationSignal, watch.signal]);
    try {
      const { files } = storage;
      const tables = await merge(task.merge, { files, signal, parent });
      if (!watch.check()) return tables;
      files.discard(tables.map(({ file }) => file));
      throw new MillraceError('cancelled', 'this process had stood still, and somebody else does the compaction');
    } finally {
      await storage.close();
    }
  }
}
