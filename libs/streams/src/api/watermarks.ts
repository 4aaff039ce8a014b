import { MillraceError } from '@millrace/kernel';
import { type Duration, durationMs } from './duration.ts';

/** How a source concludes from the records it has read that no earlier ones will follow. */
export interface WatermarkStrategy {
  /** Records may be older than the newest one by at most this much; older ones are late. */
  readonly outOfOrdernessMs: number;
  /** A source without records for this long is idle and holds nobody back; undefined: never. */
  readonly idleMs: number | undefined;
  /** The least time between two watermarks of a busy source, by the machine's clock. */
  readonly intervalMs: number;
}

export interface WatermarkOptions {
  /** Default: never idle. */
  readonly idle?: Duration;
  /** Default 200 ms: each watermark waits for the records before it, so a steady stream of them costs throughput. */
  readonly interval?: Duration;
}

/** The watermark trails the newest timestamp by `bound`. */
export function boundedOutOfOrderness(bound: Duration, options: WatermarkOptions = {}): WatermarkStrategy {
  const outOfOrdernessMs = durationMs(bound, 'the out-of-orderness bound');
  if (outOfOrdernessMs < 0) {
    throw new MillraceError('bad-argument', `the out-of-orderness bound must not be negative: ${outOfOrdernessMs}`);
  }
  const idleMs = options.idle === undefined ? undefined : durationMs(options.idle, 'idle');
  if (idleMs !== undefined && idleMs <= 0) throw new MillraceError('bad-argument', `idle must be positive: ${idleMs}`);
  const intervalMs = durationMs(options.interval ?? 200, 'the watermark interval');
  if (intervalMs < 0) throw new MillraceError('bad-argument', `the watermark interval is negative: ${intervalMs}`);
  return { outOfOrdernessMs, idleMs, intervalMs };
}

/** Each subtask reads its records in order of time. */
export function monotonous(options: WatermarkOptions = {}): WatermarkStrategy {
  return boundedOutOfOrderness(0, options);
}
