import type { Epoch } from './epoch.ts';

/** A record that waits for its key: a node of an intrusive queue, recycled through `WorkPool`. */
export interface Work<K, R> {
  key: K;
  record: R;
  epoch: Epoch;
  next: Work<K, R> | undefined;
}

/** FIFO of work. */
export class WorkQueue<K, R> {
  #head: Work<K, R> | undefined;
  #tail: Work<K, R> | undefined;

  get empty(): boolean {
    return this.#head === undefined;
  }

  push(work: Work<K, R>): void {
    if (this.#tail === undefined) this.#head = work;
    else this.#tail.next = work;
    this.#tail = work;
  }

  shift(): Work<K, R> | undefined {
    const work = this.#head;
    if (work === undefined) return undefined;
    this.#head = work.next;
    if (work.next === undefined) this.#tail = undefined;
    else work.next = undefined;
    return work;
  }

  clear(): void {
    this.#head = undefined;
    this.#tail = undefined;
  }
}

/** Free list of work nodes. A node is given back when its record starts, so nothing else can still point at it. */
export class WorkPool<K, R> {
  readonly #sizeMax: number;
  #size = 0;
  #free: Work<K, R> | undefined;

  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax;
  }

  take(key: K, record: R, epoch: Epoch): Work<K, R> {
    const work = this.#free;
    if (work === undefined) return { key, record, epoch, next: undefined };
    this.#free = work.next;
    this.#size--;
    work.key = key;
    work.record = record;
    work.epoch = epoch;
    work.next = undefined;
    return work;
  }

  /** The caller has read what it needs; the node forgets it, so that a record lives no longer than its handler. */
  give(work: Work<K, R>): void {
    if (this.#size >= this.#sizeMax) return;
    work.key = undefined as K;
    work.record = undefined as R;
    work.epoch = undefined as unknown as Epoch;
    work.next = this.#free;
    this.#free = work;
    this.#size++;
  }
}
