import { type Clock, isPending, type MaybePromise, type Timer } from '@millrace/kernel';
import type { DueTimer, TimerQueue } from '@millrace/state';

/** Timers taken from the queue at a time; between two batches everything else has its turn. */
const timersPerBatch = 1000;
/** How long the clock is trusted: it may jump, and Node takes no longer delays than 2^31 ms. */
const delayMaxMs = 60_000;
/** A drain that no snapshot follows (its round was given up) holds timers up for this long at most. */
const holdMaxMs = 500;

export interface ProcessingTimersOptions {
  readonly queue: TimerQueue;
  readonly clock: Clock;
  /** Starts the handler of a timer. */
  fire(timer: DueTimer): void;
  /** A promise while no more work may start. */
  room(): void | Promise<void>;
  failed(error: unknown): void;
}

/**
 * Fires the timers of processing time of one operator: all that are due in one go, in batches between which barriers
 * and records have their turn, and never early, whatever the machine's timer does. While the operator is held for a
 * checkpoint no batch starts; a timer is taken from the queue and its handler started before `hold` is granted.
 */
export class ProcessingTimers {
  readonly #options: ProcessingTimersOptions;
  /** Processing time never goes back within an attempt. */
  #nowMs = Number.NEGATIVE_INFINITY;
  #wake: Timer | undefined;
  #wakeMs = Number.POSITIVE_INFINITY;
  #batch: Promise<void> | undefined;
  #held = false;
  #release: Timer | undefined;
  #over = false;
  /** Timers taken from the queue whose handlers have not been started. */
  taken = 0;

  constructor(options: ProcessingTimersOptions) {
    this.#options = options;
  }

  nowMs(): number {
    const nowMs = this.#options.clock.nowMs();
    if (nowMs > this.#nowMs) this.#nowMs = nowMs;
    return this.#nowMs;
  }

  /** Looks for the earliest timer, and waits for it. */
  start(): void {
    const nextMs = this.#options.queue.nextMs();
    if (!isPending(nextMs)) return this.registered(nextMs);
    nextMs.then(
      (laterMs) => this.registered(laterMs),
      (error: unknown) => this.#options.failed(error),
    );
  }

  /** There is a timer for this time: an earlier one than that waited for comes first. */
  registered(timeMs: number): void {
    if (timeMs >= this.#wakeMs || this.#over) return;
    this.#schedule(timeMs, timeMs - this.nowMs());
  }

  /** No batch starts until {@link release}; a promise while one is being started. */
  hold(): void | Promise<void> {
    this.#held = true;
    if (this.#wakeMs < Number.POSITIVE_INFINITY || this.#batch !== undefined) {
      this.#release?.cancel();
      this.#release = this.#options.clock.schedule(holdMaxMs, () => this.release());
    }
    return this.#batch;
  }

  release(): void {
    if (!this.#held) return;
    this.#held = false;
    this.#release?.cancel();
    this.#release = undefined;
    if (this.#wakeMs < Number.POSITIVE_INFINITY && this.#wake === undefined) this.#schedule(this.#wakeMs, 0);
  }

  /** None fires any more; a promise while a batch is being started. Idempotent. */
  end(): void | Promise<void> {
    this.#over = true;
    this.#wake?.cancel();
    this.#release?.cancel();
    this.#wakeMs = Number.POSITIVE_INFINITY;
    return this.#batch;
  }

  #schedule(timeMs: number, delayMs: number): void {
    this.#wake?.cancel();
    this.#wakeMs = timeMs;
    const waitMs = Math.min(delayMaxMs, Math.max(0, Math.ceil(delayMs)));
    this.#wake = this.#options.clock.schedule(waitMs, this.#due);
  }

  readonly #due = (): void => {
    this.#wake = undefined;
    // Held: `release` schedules it anew. A batch under way looks for the next one itself.
    if (this.#over || this.#held || this.#batch !== undefined) return;
    if (this.nowMs() < this.#wakeMs) return this.#schedule(this.#wakeMs, this.#wakeMs - this.nowMs());
    this.#wakeMs = Number.POSITIVE_INFINITY;
    try {
      const starting = this.#start(this.#options.queue.popDue(this.nowMs(), timersPerBatch));
      if (!isPending(starting)) return this.#next();
      this.#batch = starting.then(() => {
        this.#batch = undefined;
        this.#next();
      });
      this.#batch.catch((error: unknown) => this.#options.failed(error));
    } catch (error) {
      this.#options.failed(error);
    }
  };

  #start(due: MaybePromise<readonly DueTimer[]>): void | Promise<void> {
    if (isPending(due) || this.#options.room() !== undefined) return this.#startSlowly(due);
    for (const timer of due) this.#options.fire(timer);
  }

  async #startSlowly(pending: MaybePromise<readonly DueTimer[]>): Promise<void> {
    const due = await pending;
    this.taken = due.length;
    for (const timer of due) {
      for (let room = this.#options.room(); room !== undefined; room = this.#options.room()) await room;
      this.#options.fire(timer);
      this.taken--;
    }
  }

  #next(): void {
    if (!this.#over) this.start();
  }
}
