import { MillraceError } from '@millrace/kernel';
import { type Duration, durationMs } from './duration.ts';

/** How a source concludes from the records it has read that no earlier ones will follow. */
export interface WatermarkStrategy {
  /** Records may be older than the newest one by at most this much; older ones are late. */
  readonly outOfOrdernessMs: number;
  /** A source without records for this long is idle and holds nobody back; undefined: never. */
  readonly idleMs: number | undefined;
}

/** The watermark trails the newest timestamp by `bound`. */
export function boundedOutOfOrderness(bound: Duration, options: { readonly idle?: Duration } = {}): WatermarkStrategy {
  const outOfOrdernessMs = durationMs(bound, 'the out-of-orderness bound');
  if (outOfOrdernessMs < 0) {
    throw new MillraceError('bad-argument', `the out-of-orderness bound must not be negative: ${outOfOrdernessMs}`);
  }
  const idleMs = options.idle === undefined ? undefined : durationMs(options.idle, 'idle');
  if (idleMs !== undefined && idleMs <= 0) throw new MillraceError('bad-argument', `idle must be positive: ${idleMs}`);
  return { outOfOrdernessMs, idleMs };
}

/** Each subtask reads its records in order of time. */
export function monotonous(options: { readonly idle?: Duration } = {}): WatermarkStrategy {
  return boundedOutOfOrderness(0, options);
}
