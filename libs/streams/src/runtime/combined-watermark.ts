/** One of several inputs, as far as time goes. */
export interface TimedInput {
  readonly watermarkMs: number;
  readonly idle: boolean;
  readonly ended: boolean;
}

/**
 * The watermark over several inputs: the smallest of the active ones. When all are idle it is the largest of them, so that
 * the result does not depend on which went idle first. Ended ones hold nothing back; all ended is the end of time.
 */
export function combinedWatermark(inputs: Iterable<TimedInput>): number {
  let smallestActive = Number.POSITIVE_INFINITY;
  let largestIdle = Number.NEGATIVE_INFINITY;
  let active = 0;
  let idle = 0;
  for (const input of inputs) {
    if (input.ended) continue;
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
