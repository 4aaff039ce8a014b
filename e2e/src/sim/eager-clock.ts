import type { Clock, Timer } from '@millrace/kernel';

/** Time that passes as fast as it is waited for: for scenarios in which only the order of steps counts. */
export class EagerClock implements Clock {
  #nowMs = 1_700_000_000_000;

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  schedule(delayMs: number, callback: () => void): Timer {
    const immediate = setImmediate(() => {
      this.#nowMs += Math.max(0, delayMs);
      callback();
    });
    return { cancel: () => clearImmediate(immediate) };
  }
}

/** One turn of everything that can run. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
