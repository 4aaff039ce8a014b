import type { Clock, Timer } from '../clock.ts';

/** A clock that moves only when told to. Timers fire in order of due time, then of registration. */
export class ManualClock implements Clock {
  #nowMs: number;
  #sequence = 0;
  readonly #timers = new Map<number, { dueMs: number; callback: () => void }>();

  constructor(startMs = 0) {
    this.#nowMs = startMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  schedule(delayMs: number, callback: () => void): Timer {
    const id = this.#sequence++;
    this.#timers.set(id, { dueMs: this.#nowMs + Math.max(0, delayMs), callback });
    return { cancel: () => void this.#timers.delete(id) };
  }

  /** Moves time forward by `ms`, firing what falls due on the way, each at its own time. */
  advance(ms: number): void {
    const target = this.#nowMs + ms;
    for (let next = this.#nextDue(target); next !== undefined; next = this.#nextDue(target)) {
      const [id, timer] = next;
      this.#timers.delete(id);
      this.#nowMs = Math.max(this.#nowMs, timer.dueMs);
      timer.callback();
    }
    this.#nowMs = target;
  }

  /** Moves time to the next timer and fires what is due then; false when there is none. */
  advanceToNext(): boolean {
    const next = this.#nextDue(Number.POSITIVE_INFINITY);
    if (next !== undefined) this.advance(Math.max(0, next[1].dueMs - this.#nowMs));
    return next !== undefined;
  }

  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** When the next timer is due; undefined when there is none. */
  get nextDueMs(): number | undefined {
    return this.#nextDue(Number.POSITIVE_INFINITY)?.[1].dueMs;
  }

  #nextDue(target: number): [number, { dueMs: number; callback: () => void }] | undefined {
    let best: [number, { dueMs: number; callback: () => void }] | undefined;
    for (const candidate of this.#timers) {
      if (candidate[1].dueMs > target) continue;
      if (best === undefined || candidate[1].dueMs < best[1].dueMs) best = candidate;
    }
    return best;
  }
}
