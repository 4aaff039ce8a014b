import { assert, isPending } from '@millrace/kernel';
import { type Advance, Epoch } from './epoch.ts';

/** What the queue reports to its controller. */
export interface EpochQueueOptions {
  /** The asynchronous part of an advance is over; its epoch may be able to go on. */
  readonly advanced: () => void;
  readonly failed: (error: unknown) => void;
}

/**
 * The epochs in order of their watermarks. Each passes once: when nothing of it is pending and it is at the head, its
 * timers fire; when nothing of those is pending either, its watermark is emitted and the next epoch is looked at.
 */
export class EpochQueue {
  readonly #options: EpochQueueOptions;
  #open = new Epoch();
  #head: Epoch | undefined;
  #tail: Epoch | undefined;
  #size = 0;
  #passing = false;
  /** What derived work joins when its maker names no epoch: of the running record, else of the advance, else the open one. */
  current: Epoch = this.#open;

  constructor(options: EpochQueueOptions) {
    this.#options = options;
  }

  /** Takes new input. */
  get open(): Epoch {
    return this.#open;
  }

  /** Watermarks that have not been emitted. */
  get size(): number {
    return this.#size;
  }

  /** Ends the open epoch. `pass` has to follow. */
  close(emit: () => void, advance: Advance | undefined): void {
    const epoch = this.#open;
    epoch.stage = 'closed';
    epoch.emit = emit;
    epoch.advance = advance;
    if (this.#tail === undefined) this.#head = epoch;
    else this.#tail.next = epoch;
    this.#tail = epoch;
    this.#size++;
    this.#open = new Epoch();
    if (this.current === epoch) this.current = this.#open;
  }

  /** Passes what can pass. */
  pass(): void {
    assert(!this.#passing, 'an emit or an advance gave its own controller a watermark');
    this.#passing = true;
    try {
      for (let head = this.#head; head !== undefined && head.pending === 0; head = this.#head) this.#step(head);
    } catch (error) {
      this.#options.failed(error);
    } finally {
      this.#passing = false;
    }
  }

  /** Forgets all waiting epochs: after a failure none passes. */
  clear(): void {
    this.#head = undefined;
    this.#tail = undefined;
    this.#size = 0;
  }

  #step(head: Epoch): void {
    if (head.stage === 'closed') {
      head.stage = 'advancing';
      if (head.advance !== undefined) return this.#advance(head, head.advance);
    }
    head.stage = 'finished';
    this.#head = head.next;
    if (head.next === undefined) this.#tail = undefined;
    head.next = undefined;
    this.#size--;
    head.emit?.();
  }

  /** The advance holds its epoch: timers that finish while later ones still have to fire do not finish the epoch. */
  #advance(epoch: Epoch, advance: Advance): void {
    epoch.pending++;
    this.current = epoch;
    const pending = advance(epoch);
    if (isPending(pending)) {
      pending.then(() => {
        this.#advanced(epoch);
        this.#options.advanced();
      }, this.#options.failed);
    } else {
      this.#advanced(epoch);
    }
  }

  #advanced(epoch: Epoch): void {
    epoch.pending--;
    this.current = this.#open;
  }
}
