import { assert, type Clock, sleep } from '@millrace/kernel';
import type { FromOptions } from '../api/from-options.ts';
import type { Source, SourceReader, SplitPosition } from '../api/source.ts';
import type { WatermarkStrategy } from '../api/watermarks.ts';
import type { OperatorContext, OperatorPart, Poll, SourceOperator } from '../runtime/operator.ts';
import { BaseOperator } from './base-operator.ts';
import { RateLimit } from './rate-limit.ts';
import { dealSplits, restoreSource, sourceItems } from './source-state.ts';

/**
 * Runs a source's reader: deals the splits, keeps the rate, stamps the records, and concludes watermarks. What has been
 * emitted when the barrier is injected is exactly what the positions in the checkpoint leave out.
 */
export class SourceHost<T> extends BaseOperator implements SourceOperator {
  readonly #source: Source<T>;
  readonly #options: FromOptions<T>;
  #reader: SourceReader<T> | undefined;
  #rate: RateLimit | undefined;
  #watermarkMs = Number.NEGATIVE_INFINITY;
  #newestMs = Number.NEGATIVE_INFINITY;
  #concludedMs = Number.NEGATIVE_INFINITY;
  #emitted = 0;
  #idle = false;
  /** Restored, and the watermark has not been passed on yet. */
  #restored = false;
  /** Positions of checkpoints that are not registered, for a reader that wants to know when they are. */
  #unregistered: ReadonlyArray<{ readonly checkpoint: number; readonly positions: readonly SplitPosition[] }> = [];
  /** When the source began to wait for records. */
  #waitingSinceMs: number | undefined;

  constructor(source: Source<T>, options: FromOptions<T>) {
    super();
    this.#source = source;
    this.#options = options;
  }

  override async open(context: OperatorContext): Promise<void> {
    await super.open(context);
    const { subtask, slot } = context;
    const { parallelism, clock } = slot;
    const restored = restoreSource(context);
    const all = restored?.positions ?? (await this.#source.splits()).map((split) => ({ split, position: 0 }));
    const known = all.map(({ split }) => split.id);
    this.#reader = await this.#source.open(dealSplits(all, subtask, parallelism), {
      clock,
      subtask,
      parallelism,
      known,
    });
    const perSecond = this.#source.recordsPerSecond;
    if (perSecond !== undefined) this.#rate = new RateLimit(clock, perSecond / parallelism);
    if (restored !== undefined) this.#watermarkMs = restored.watermarkMs;
    this.#restored = restored !== undefined;
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
    const before = this.#emitted;
    const poll = this.#open.read(max, this.#emit);
    const count = this.#emitted - before;
    this.#rate?.take(count);
    if (poll === 'end') {
      this.#activate();
      this.#advance(Number.POSITIVE_INFINITY);
      return 'end';
    }
    if (count > 0) this.#activate();
    if (this.#options.watermarks !== undefined) this.#conclude(this.#options.watermarks, poll !== 'more');
    return poll === 'more' ? poll : this.#wait(poll);
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

  readonly #emit = (record: T): void => {
    this.#emitted++;
    const stamp = this.#options.timestamp;
    const timestampMs = stamp === undefined ? 0 : stamp(record);
    if (timestampMs > this.#newestMs) this.#newestMs = timestampMs;
    this.output.emit(record, timestampMs);
  };

  /** The first thing after a restore: where time had been, before any record. */
  #resume(): void {
    this.#restored = false;
    if (this.#watermarkMs > Number.NEGATIVE_INFINITY) this.output.watermark(this.#watermarkMs);
  }

  /** A watermark from what has been read, when one is due; `now` when there is nothing more to read for a while. */
  #conclude(strategy: WatermarkStrategy, now: boolean): void {
    const nowMs = this.#clock.monotonicMs();
    if (!now && nowMs - this.#concludedMs < strategy.intervalMs) return;
    this.#concludedMs = nowMs;
    this.#advance(this.#newestMs - strategy.outOfOrdernessMs - 1);
  }

  #advance(watermarkMs: number): void {
    if (watermarkMs <= this.#watermarkMs) return;
    this.#watermarkMs = watermarkMs;
    this.output.watermark(watermarkMs);
  }

  #activate(): void {
    this.#waitingSinceMs = undefined;
    if (!this.#idle) return;
    this.#idle = false;
    this.output.status(false);
  }

  /** Nothing at hand. Idle time counts only here: a source that is backpressured is not asked, and not idle. */
  #wait(poll: Promise<void>): Promise<void> {
    const idleMs = this.#options.watermarks?.idleMs;
    if (idleMs === undefined || this.#idle) return poll;
    const nowMs = this.#clock.monotonicMs();
    this.#waitingSinceMs ??= nowMs;
    const leftMs = this.#waitingSinceMs + idleMs - nowMs;
    if (leftMs <= 0) {
      this.#idle = true;
      this.output.status(true);
      return poll;
    }
    return firstOf(poll, this.#clock, leftMs);
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
