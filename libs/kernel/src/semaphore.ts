/** FIFO permits. `take` returns nothing when a permit is at hand, a promise when the caller has to wait. */
export class Semaphore {
  #free: number;
  readonly #waiters: Array<() => void> = [];

  constructor(permits: number) {
    this.#free = permits;
  }

  get free(): number {
    return this.#free;
  }

  take(): void | Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return undefined;
    }
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  give(): void {
    const next = this.#waiters.shift();
    if (next === undefined) this.#free++;
    else next();
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    await this.take();
    try {
      return await work();
    } finally {
      this.give();
    }
  }
}
