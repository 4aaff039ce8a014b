import type { Random } from '@millrace/kernel';

/** Asynchrony without time: whoever sleeps is woken in an order that the seed decides. */
export class Scheduler {
  readonly #random: Random;
  readonly #sleeping: (() => void)[] = [];

  constructor(random: Random) {
    this.#random = random;
  }

  sleep(): Promise<void> {
    return new Promise((resolve) => this.#sleeping.push(resolve));
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
      // Several in one turn: their callbacks interleave promise by promise.
      for (let woken = this.#random.below(3); woken >= 0 && this.#sleeping.length > 0; woken--) {
        this.#sleeping.splice(this.#random.below(this.#sleeping.length), 1)[0]?.();
      }
    }
    if (!settled) throw new Error('nothing can go on: deadlock');
    await work;
  }
}
