import type { Random } from '@millrace/kernel';

interface Sleeper {
  readonly atMs: number;
  wake(): void;
}

/** How it is decided who wakes: by anyone's turn, which finds what no latency would, or by the time that has passed. */
export type Order = 'any' | 'time';

/** Asynchrony without a clock: who sleeps is woken in an order that the seed decides. */
export class Scheduler {
  readonly #random: Random;
  readonly #order: Order;
  #sleeping: Sleeper[] = [];
  #nowMs = 0;

  constructor(random: Random, order: Order) {
    this.#random = random;
    this.#order = order;
  }

  sleep(latencyMs: number): Promise<void> {
    return new Promise((resolve) => this.#sleeping.push({ atMs: this.#nowMs + latencyMs, wake: resolve }));
  }

  /** Wakes sleepers until `work` settles; calls `turn` between. Throws when all wait for each other. */
  async run(work: Promise<void>, turn: () => void): Promise<void> {
    let settled = false;
    const note = (): void => void (settled = true);
    work.then(note, note);
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      turn();
      if (this.#sleeping.length === 0) break;
      if (this.#order === 'any') this.#wakeAny();
      else this.#wakeDue();
    }
    if (!settled) throw new Error('nothing can go on: deadlock');
    await work;
  }

  /** Several in one turn: their callbacks interleave promise by promise. */
  #wakeAny(): void {
    for (let woken = this.#random.below(3); woken >= 0 && this.#sleeping.length > 0; woken--) {
      this.#sleeping.splice(this.#random.below(this.#sleeping.length), 1)[0]?.wake();
    }
  }

  #wakeDue(): void {
    this.#nowMs = this.#sleeping.reduce((least, { atMs }) => Math.min(least, atMs), Number.POSITIVE_INFINITY);
    const due = this.#sleeping.filter(({ atMs }) => atMs <= this.#nowMs);
    this.#sleeping = this.#sleeping.filter(({ atMs }) => atMs > this.#nowMs);
    while (due.length > 0) due.splice(this.#random.below(due.length), 1)[0]?.wake();
  }
}
