/**
 * Sums credits by channel until the turn of the event loop ends, so that a receiver that grants per record or per frame
 * costs one message per channel and turn. A sum that reaches `promptBytes` leaves at once: a sender may be waiting.
 */
export class CreditBatch {
  readonly #sums = new Map<number, number>();
  readonly #flush: (key: number, bytes: number) => void;
  readonly #promptBytes: number;
  #scheduled: NodeJS.Immediate | undefined;

  constructor(flush: (key: number, bytes: number) => void, promptBytes = 64 * 1024) {
    this.#flush = flush;
    this.#promptBytes = promptBytes;
  }

  add(key: number, bytes: number): void {
    const sum = (this.#sums.get(key) ?? 0) + bytes;
    if (sum >= this.#promptBytes) {
      this.#sums.delete(key);
      this.#flush(key, sum);
      return;
    }
    this.#sums.set(key, sum);
    this.#scheduled ??= setImmediate(() => this.flush());
  }

  flush(): void {
    this.close();
    for (const [key, bytes] of this.#sums) this.#flush(key, bytes);
    this.#sums.clear();
  }

  /** Forgets the pending turn; what is summed leaves only by `flush`. */
  close(): void {
    clearImmediate(this.#scheduled);
    this.#scheduled = undefined;
  }
}
