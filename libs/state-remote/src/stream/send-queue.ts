/** An item that waits or is under way. */
export interface Sized {
  readonly costBytes: number;
}

/**
 * First in, first out, with at most `windowBytes` under way; an item larger than the window goes alone. Pure: says what
 * to send, sends nothing.
 */
export class SendQueue<T extends Sized> {
  readonly #windowBytes: number;
  #waiting: T[] = [];
  #head = 0;
  #waitingBytes = 0;
  #sentBytes = 0;

  constructor(windowBytes: number) {
    this.#windowBytes = windowBytes;
  }

  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** Bytes under way. */
  get sentBytes(): number {
    return this.#sentBytes;
  }

  get isEmpty(): boolean {
    return this.#head === this.#waiting.length;
  }

  push(item: T): void {
    this.#waiting.push(item);
    this.#waitingBytes += item.costBytes;
  }

  /** The next item to send, which then counts as under way; undefined when there is none or no room. */
  next(): T | undefined {
    const item = this.#waiting[this.#head];
    if (item === undefined) return undefined;
    if (this.#sentBytes > 0 && this.#sentBytes + item.costBytes > this.#windowBytes) return undefined;
    this.#head++;
    this.#waitingBytes -= item.costBytes;
    this.#sentBytes += item.costBytes;
    if (this.isEmpty) this.#waiting = [];
    else if (this.#head >= 1024) this.#waiting = this.#waiting.slice(this.#head);
    else return item;
    this.#head = 0;
    return item;
  }

  /** An item under way has been answered. */
  done(item: T): void {
    this.#sentBytes -= item.costBytes;
  }

  /** Takes everything that waits out of the queue. */
  drop(): T[] {
    const dropped = this.#waiting.slice(this.#head);
    this.#waiting = [];
    this.#head = 0;
    this.#waitingBytes = 0;
    return dropped;
  }
}
