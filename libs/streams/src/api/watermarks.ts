import { MillraceError } from '@millrace/kernel';
import { type Duration, durationMs } from './duration.ts';

/** What concludes from the records of one split up to when everything has come. */
export interface WatermarkTracker<T> {
  /** A watermark to send on at once, right after this record; else undefined. */
  onRecord(record: T, timestampMs: number): number | undefined;
  /** The watermark as of now, asked for at intervals. */
  onInterval?(): number | undefined;
}

/** How a source concludes from the records it has read that no earlier ones will follow. */
export interface WatermarkStrategy<T = unknown> {
  /** Makes the tracker of a split. */
  tracker(): WatermarkTracker<T>;
  /** A split without records for this long is idle and holds nobody back; undefined: never. */
  readonly idleMs: number | undefined;
  /** The least time between two watermarks of a busy source, by the machine's clock. */
  readonly intervalMs: number;
  /** How far the watermark of a split may be ahead of the others'; undefined: as far as it likes. */
  readonly aheadMaxMs: number | undefined;
}

export interface WatermarkOptions {
  /**
   * A split without records for this long is idle: it no longer holds back the watermark. Only the time counts in which the
   * source was reading or waiting for input, not that in which full outputs or alignment held it up. Default: never idle.
   */
  readonly idle?: Duration;
  /** Default 200 ms: each watermark waits for the records before it, so a steady stream of them costs throughput. */
  readonly interval?: Duration;
  /**
   * Alignment: a split whose watermark is further than this ahead of the slowest active split of its subtask, or of what the
   * operators behind the source have seen from all its subtasks (and from the job's other sources, where they meet), is
   * not read until the others have caught up. It bounds what joins and windows hold for a fast input. Default: no bound.
   */
  readonly aheadMax?: Duration;
}

/** The watermark trails the newest timestamp by `bound`. */
export function boundedOutOfOrderness(bound: Duration, options: WatermarkOptions = {}): WatermarkStrategy {
  const boundMs = durationMs(bound, 'the out-of-orderness bound');
  if (boundMs < 0) {
    throw new MillraceError('bad-argument', `the out-of-orderness bound must not be negative: ${boundMs}`);
  }
  return { tracker: () => new BoundedTracker(boundMs), ...compiled(options) };
}

/** Each split has its records in order of time. */
export function monotonous(options: WatermarkOptions = {}): WatermarkStrategy {
  return boundedOutOfOrderness(0, options);
}

/** Some records say what the watermark is: `watermarkOf` returns it, or undefined. It is sent on right after them. */
export function perRecord<T>(
  watermarkOf: (record: T, timestampMs: number) => number | undefined,
  options: WatermarkOptions = {},
): WatermarkStrategy<T> {
  return { tracker: () => ({ onRecord: watermarkOf }), ...compiled(options) };
}

/** A tracker of your own, one for each split. What it returns never takes the watermark back. */
export function customWatermarks<T>(
  tracker: () => WatermarkTracker<T>,
  options: WatermarkOptions = {},
): WatermarkStrategy<T> {
  return { tracker, ...compiled(options) };
}

class BoundedTracker implements WatermarkTracker<unknown> {
  readonly #boundMs: number;
  #newestMs = Number.NEGATIVE_INFINITY;

  constructor(boundMs: number) {
    this.#boundMs = boundMs;
  }

  onRecord(_record: unknown, timestampMs: number): undefined {
    if (timestampMs > this.#newestMs) this.#newestMs = timestampMs;
  }

  onInterval(): number {
    return this.#newestMs - this.#boundMs - 1;
  }
}

function compiled(options: WatermarkOptions): Omit<WatermarkStrategy, 'tracker'> {
  const idleMs = options.idle === undefined ? undefined : durationMs(options.idle, 'idle');
  if (idleMs !== undefined && idleMs <= 0) throw new MillraceError('bad-argument', `idle must be positive: ${idleMs}`);
  const intervalMs = durationMs(options.interval ?? 200, 'the watermark interval');
  if (intervalMs < 0) throw new MillraceError('bad-argument', `the watermark interval is negative: ${intervalMs}`);
  const aheadMaxMs = options.aheadMax === undefined ? undefined : durationMs(options.aheadMax, 'aheadMax');
  if (aheadMaxMs !== undefined && aheadMaxMs < 0) {
    throw new MillraceError('bad-argument', `aheadMax must not be negative: ${aheadMaxMs}`);
  }
  return { idleMs, intervalMs, aheadMaxMs };
}
