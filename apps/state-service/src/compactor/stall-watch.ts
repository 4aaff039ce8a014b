import type { Clock, Timer } from '@millrace/kernel';

export interface StallWatchOptions {
  readonly clock: Clock;
  readonly intervalMs: number;
  /** Silence of so long means that nobody waits for this process any more. */
  readonly silenceMaxMs: number;
  readonly beat: () => void;
}

/**
 * Beats at an interval, and notices when this process itself had stood still for so long that it counts as dead: stopped by
 * a debugger, a snapshot of its machine, a host without memory. Then somebody else does its work.
 */
export class StallWatch {
  readonly #options: StallWatchOptions;
  readonly #stalled = new AbortController();
  #timer: Timer;
  #lastMs: number;

  constructor(options: StallWatchOptions) {
    this.#options = options;
    this.#lastMs = options.clock.monotonicMs();
    this.#timer = this.#next();
  }

  /** Aborted once a silence was too long. */
  get signal(): AbortSignal {
    return this.#stalled.signal;
  }

  /** Looks now; true when there was a silence that was too long. */
  check(): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs - this.#lastMs > this.#options.silenceMaxMs) this.#stalled.abort();
    this.#lastMs = nowMs;
    return this.#stalled.signal.aborted;
  }

  stop(): void {
    this.#timer.cancel();
  }

  #next(): Timer {
    const { clock, intervalMs, beat } = this.#options;
    return clock.schedule(intervalMs, () => {
      if (this.check()) return;
      beat();
      this.#timer = this.#next();
    });
  }
}
