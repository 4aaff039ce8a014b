/** One of several inputs, as far as time goes. */
export interface TimedInput {
  readonly watermarkMs: number;
  readonly idle: boolean;
  readonly ended: boolean;
}

/**
 * The watermark over several inputs: the smallest of the active ones. When all are idle it is the largest of them, so that
 * the result does not depend on which went idle first. Ended ones, and those at the end of time, hold nothing back; the
 * end of time is that of all, also of idle ones: at its end an input may still have results.
 */
export function combinedWatermark(inputs: Iterable<TimedInput>): number {
  let smallestActive = Number.POSITIVE_INFINITY;
  let largestIdle = Number.NEGATIVE_INFINITY;
  let active = 0;
  let idle = 0;
  for (const input of inputs) {
    if (input.ended || input.watermarkMs === Number.POSITIVE_INFINITY) continue;
    if (input.idle) {
      idle++;
      if (input.watermarkMs > largestIdle) largestIdle = input.watermarkMs;
    } else {
      active++;
      if (input.watermarkMs < smallestActive) smallestActive = input.watermarkMs;
    }
  }
  if (active > 0) return smallestActive;
  return idle > 0 ? largestIdle : Number.POSITIVE_INFINITY;
}
