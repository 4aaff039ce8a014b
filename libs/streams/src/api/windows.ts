import { MillraceError } from '@millrace/kernel';
import { type Duration, durationMs } from './duration.ts';

/** Windows of one size, side by side; a record is in exactly one. */
export interface TumblingWindows {
  readonly kind: 'tumbling';
  readonly sizeMs: number;
  readonly offsetMs: number;
}

export interface Window {
  /** First timestamp in the window. */
  readonly startMs: number;
  /** First timestamp after it. */
  readonly endMs: number;
}

/** Tumbling event-time windows, aligned to the epoch (UTC) plus `offset`. */
export function tumbling(size: Duration, options: { readonly offset?: Duration } = {}): TumblingWindows {
  const sizeMs = durationMs(size, 'the window size');
  if (sizeMs <= 0) throw new MillraceError('bad-argument', `the window size must be positive: ${sizeMs}`);
  return { kind: 'tumbling', sizeMs, offsetMs: durationMs(options.offset ?? 0, 'the window offset') };
}

/** Start of the window that holds `timestampMs`; right for times before the epoch too. */
export function windowStart(windows: TumblingWindows, timestampMs: number): number {
  const { sizeMs, offsetMs } = windows;
  return Math.floor((timestampMs - offsetMs) / sizeMs) * sizeMs + offsetMs;
}
