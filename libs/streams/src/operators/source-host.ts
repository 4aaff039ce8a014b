import { assert, type Clock, MillraceError, sleep } from '@millrace/kernel';
import type { FromOptions } from '../api/from-options.ts';
import type { Source, SourceReader, Split, SplitPosition } from '../api/source.ts';
import type { OperatorContext, OperatorPart, Poll, SourceOperator } from '../runtime/operator.ts';
import { BaseOperator } from './base-operator.ts';
import { RateLimit } from './rate-limit.ts';
import { dealSplits, restoreSource, sourceItems } from './source-state.ts';
import { SplitTimes } from './split-time.ts';

/** How often a source that has to wait for others looks how far they are. */
const alignmentCheckMs = 5;

/**
 * Runs a source's reader: deals the splits, keeps the rate, stamps the records, and concludes watermarks. What has been
 * emitted when the barrier is injected is exactly what the positions in the checkpoint leave out.
 */
export class SourceHost<T> extends BaseOperator implements SourceOperator {
  readonly source: Source<T>;
  readonly options: FromOptions<T>;
  #reader: SourceReader<T> | undefined;
  #rate: RateLimit | undefined;
  #watermarkMs = Number.NEGATIVE_INFINITY;
  #times: SplitTimes<T> | undefined;
  #concludedMs = Number.NEGATIVE_INFINITY;
  #emitted = 0;
  #idle = false;
  /** Restored, and the watermark has not been passed on yet. */
  #restored = false;
  /** Positions of checkpoints that are not registered, for a reader that wants to know when they are. */
  #unregistered: ReadonlyArray<{ readonly checkpoint: number; readonly positions: readonly SplitPosition[] }> = [];
  /** Time spent reading and waiting for input: what idleness is measured by. It stands still while the source is held up. */
  #readingMs = 0;

  constructor(source: Source<T>, options: FromOptions<T>) {
    super();
    this.source = source;
    this.options = options;
  }

  override async open(context: OperatorContext): Promise<void> {
    await super.open(context);
    const { subtask, slot } = context;
    const { parallelism, clock } = slot;
    const restored = restoreSource(context);
    const all = restored?.positions ?? (await this.source.splits()).map((split) => ({ split, position: 0 }));
    const known = all.map(({ split }) => split.id);
    this.#reader = await this.source.open(dealSplits(all, subtask, parallelism), {
      clock,
      subtask,
      parallelism,
      known,
    });
    const perSecond = this.source.recordsPerSecond;
    if (perSecond !== undefined) this.#rate = new RateLimit(clock, perSecond / parallelism);
    if (restored !== undefined) this.#watermarkMs = restored.watermarkMs;
    this.#restored = restored !== undefined;
    const { watermarks } = this.options;
    if (watermarks !== undefined) this.#times = new SplitTimes(watermarks, this.#reader.openSplits?.());
  }

  override record(): void {
    assert(false, 'a source takes no records');
  }

  poll(recordsMax: number): Poll {
    if (this.#restored) this.#resume();
    let max = recordsMax;
    if (this.#rate !== undefined) {
      max = Math.min(max, this.#rate.allowed());
      if (max < 1) return sleep(this.#clock, this.#rate.waitMs());
    }
    const times = this.#times;
    if (times !== undefined && this.options.watermarks?.aheadMaxMs !== undefined && this.#mustWait(times)) {
      return sleep(this.#clock, alignmentCheckMs);
    }
    const before = this.#emitted;
    const startMs = this.#clock.monotonicMs();
    const poll = this.#open.read(max, this.#emit);
    this.#rate?.take(this.#emitted - before);
    if (poll === 'end') {
      this.#activate();
      this.#advance(Number.POSITIVE_INFINITY);
      return 'end';
    }
    if (times === undefined) return poll;
    const nowMs = this.#clock.monotonicMs();
    this.#readingMs += nowMs - startMs;
    this.#conclude(times, nowMs, poll !== 'more');
    return poll === 'more' ? poll : this.#wait(times, poll);
  }

  override snapshot(checkpoint: number): Promise<OperatorPart> {
    const positions = this.#open.positions();
    if (this.#open.commit !== undefined) this.#unregistered = [...this.#unregistered, { checkpoint, positions }];
    return Promise.resolve({ list: sourceItems(this.#watermarkMs, positions) });
  }

  override complete(checkpoint: number): void {
    const due = this.#unregistered.findLast((one) => one.checkpoint <= checkpoint);
    if (due === undefined) return;
    this.#unregistered = this.#unregistered.filter((one) => one.checkpoint > checkpoint);
    this.#open.commit?.(due.positions);
  }

  override abort(checkpoint: number): void {
    this.#unregistered = this.#unregistered.filter((one) => one.checkpoint > checkpoint);
  }

  override async close(): Promise<void> {
    await this.#reader?.close();
  }

  get #open(): SourceReader<T> {
    assert(this.#reader !== undefined, 'source used before it was opened');
    return this.#reader;
  }

  get #clock(): Clock {
    return this.context.slot.clock;
  }

  readonly #emit = (record: T, split?: Split): void => {
    this.#emitted++;
    const stamp = this.options.timestamp;
    const timestampMs = stamp === undefined ? 0 : stamp(record);
    if (!Number.isFinite(timestampMs)) this.#refuse(timestampMs);
    const times = this.#times;
    if (times === undefined) return this.output.emit(record, timestampMs);
    const risen = times.record(split, record, timestampMs, this.#readingMs);
    // What is idle protects no record: it is active before its first one.
    if (this.#idle) this.#activate();
    this.output.emit(record, timestampMs);
    if (risen) this.#advance(times.watermarkMs);
  };

  #refuse(timestampMs: number): never {
    const { uid } = this.context;
    throw new MillraceError('source-input', `${uid}: the timestamp of a record is ${timestampMs}`, {
      details: { operator: uid },
    });
  }

  /** The first thing after a restore: where time had been, before any record. */
  #resume(): void {
    this.#restored = false;
    if (this.#watermarkMs > Number.NEGATIVE_INFINITY) this.output.watermark(this.#watermarkMs);
  }

  /** Watermark and status from what has been read, when they are due; `now` when there is nothing to read for a while. */
  #conclude(times: SplitTimes<T>, nowMs: number, now: boolean): void {
    if (!now && nowMs - this.#concludedMs < (this.options.watermarks?.intervalMs ?? 0)) return;
    this.#concludedMs = nowMs;
    this.#look(times);
    const { idle } = times;
    if (!idle) this.#activate();
    this.#advance(times.watermarkMs);
    if (!idle || this.#idle) return;
    // All that there was has been read, and nothing is waited for: the end is next.
    if (!now && times.isEmpty) return;
    this.#idle = true;
    this.output.status(true);
  }

  #look(times: SplitTimes<T>): void {
    const open = this.#open.openSplits?.();
    if (open !== undefined) times.sync(open, this.#readingMs);
    times.look(this.#readingMs);
  }

  /** True when every split is too far ahead of the others. What these wait for has been sent then. */
  #mustWait(times: SplitTimes<T>): boolean {
    this.#look(times);
    const { all, changed, ids } = times.align(this.context.downstreamWatermarkMs?.() ?? Number.POSITIVE_INFINITY);
    if (changed) this.#open.pause?.(ids);
    if (all) this.#advance(times.watermarkMs);
    return all;
  }

  #advance(watermarkMs: number): void {
    if (watermarkMs <= this.#watermarkMs) return;
    this.#watermarkMs = watermarkMs;
    this.output.watermark(watermarkMs);
  }

  #activate(): void {
    if (!this.#idle) return;
    this.#idle = false;
    this.output.status(false);
  }

  /** Nothing at hand: until there is, until a split becomes idle, or until one that was paused may go on. */
  #wait(times: SplitTimes<T>, poll: Promise<void>): Promise<void> {
    const idleMs = times.untilIdleMs(this.#readingMs);
    const waitMs = times.anyPaused ? Math.min(idleMs, alignmentCheckMs) : idleMs;
    return waitMs === Number.POSITIVE_INFINITY ? poll : this.#counted(poll, waitMs);
  }

  async #counted(poll: Promise<void>, waitMs: number): Promise<void> {
    const startMs = this.#clock.monotonicMs();
    try {
      await firstOf(poll, this.#clock, Math.max(0, waitMs));
    } finally {
      this.#readingMs += this.#clock.monotonicMs() - startMs;
    }
  }
}

/** Resolves with `work` or after `delayMs`, whichever is first; leaves no timer behind. */
async function firstOf(work: Promise<void>, clock: Clock, delayMs: number): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = clock.schedule(delayMs, late.resolve);
  try {
    await Promise.race([work, late.promise]);
  } finally {
    timer.cancel();
  }
}
