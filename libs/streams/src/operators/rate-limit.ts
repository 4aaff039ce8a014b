import type { Clock } from '@millrace/kernel';

/** How many records may have been emitted by now. Never saves up more than a tenth of a second. */
export class RateLimit {
  readonly #clock: Clock;
  readonly #perMs: number;
  #tokens = 0;
  #lastMs: number;

  constructor(clock: Clock, recordsPerSecond: number) {
    this.#clock = clock;
    this.#perMs = recordsPerSecond / 1000;
    this.#lastMs = clock.monotonicMs();
  }

  /** Records that may be emitted now. */
  allowed(): number {
    const nowMs = this.#clock.monotonicMs();
    const burst = Math.max(1, this.#perMs * 100);
    this.#tokens = Math.min(burst, this.#tokens + (nowMs - this.#lastMs) * this.#perMs);
    this.#lastMs = nowMs;
    return Math.floor(this.#tokens);
  }

  take(records: number): void {
    this.#tokens -= records;
  }

  /** Until the next record is allowed. */
  waitMs(): number {
    return Math.max(1, Math.ceil((1 - this.#tokens) / this.#perMs));
  }
}
