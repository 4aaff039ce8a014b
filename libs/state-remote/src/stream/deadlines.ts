import type { Clock, Timer } from '@millrace/kernel';

/** Deadlines of many requests with one timer, set for the earliest; a request that ends in time costs no timer. */
export class Deadlines {
  readonly #clock: Clock;
  readonly #onMissed: (key: number) => void;
  readonly #dueMs = new Map<number, number>();
  #timer: { readonly timer: Timer; readonly dueMs: number } | undefined;

  constructor(clock: Clock, onMissed: (key: number) => void) {
    this.#clock = clock;
    this.#onMissed = onMissed;
  }

  set(key: number, timeoutMs: number): void {
    const dueMs = this.#clock.monotonicMs() + timeoutMs;
    this.#dueMs.set(key, dueMs);
    if (this.#timer === undefined || dueMs < this.#timer.dueMs) this.#schedule(dueMs);
  }

  clear(key: number): void {
    this.#dueMs.delete(key);
  }

  /** Forgets all. */
  close(): void {
    this.#dueMs.clear();
    this.#timer?.timer.cancel();
    this.#timer = undefined;
  }

  #schedule(dueMs: number): void {
    this.#timer?.timer.cancel();
    const timer = this.#clock.schedule(Math.max(0, dueMs - this.#clock.monotonicMs()), () => this.#look());
    this.#timer = { timer, dueMs };
  }

  #look(): void {
    this.#timer = undefined;
    const nowMs = this.#clock.monotonicMs();
    let earliestMs = Number.POSITIVE_INFINITY;
    for (const [key, dueMs] of this.#dueMs) {
      if (dueMs > nowMs) earliestMs = Math.min(earliestMs, dueMs);
      else if (this.#dueMs.delete(key)) this.#onMissed(key);
    }
    if (this.#dueMs.size > 0 && this.#timer === undefined) this.#schedule(earliestMs);
  }
}
