import { MillraceError } from '@millrace/kernel';

/** Milliseconds, or a sum of larger units: `{ days: 1 }`, `{ hours: 1, minutes: 30 }`. Days are 24 hours. */
export type Duration =
  | number
  | {
      readonly days?: number;
      readonly hours?: number;
      readonly minutes?: number;
      readonly seconds?: number;
      readonly ms?: number;
    };

/** The duration in milliseconds; `name` is what the error calls it. */
export function durationMs(duration: Duration, name: string): number {
  const ms =
    typeof duration === 'number'
      ? duration
      : (((duration.days ?? 0) * 24 + (duration.hours ?? 0)) * 60 + (duration.minutes ?? 0)) * 60_000 +
        (duration.seconds ?? 0) * 1000 +
        (duration.ms ?? 0);
  if (!Number.isSafeInteger(ms)) {
    throw new MillraceError('bad-argument', `${name} must be a whole number of milliseconds, not ${ms}`);
  }
  return ms;
}
