import { type Clock, systemClock } from '@millrace/kernel';

/** A millisecond is a turn of the event loop: what waits is overtaken, and no time is lost. */
export const turnClock: Clock = {
  nowMs: () => systemClock.nowMs(),
  monotonicMs: () => systemClock.monotonicMs(),
  schedule(delayMs, callback) {
    let left = delayMs;
    let handle = setImmediate(function turn() {
      if (--left <= 0) callback();
      else handle = setImmediate(turn);
    });
    return { cancel: () => clearImmediate(handle) };
  },
};
