import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Clock, Timer } from '@millrace/kernel';
import type { SlotBudget } from './slot-budget.ts';

/** Compiled code is kept between starts: a slot's thread is then up in a third of the time. */
const compileCache = process.env.NODE_COMPILE_CACHE ?? join(tmpdir(), 'node-compile-cache');

/** How long a thread waits for a slot to run. */
const warmMs = 20_000;

export interface SlotWorkersOptions {
  readonly budget: SlotBudget;
  /** At most so many threads wait: the runner's slots. */
  readonly warmMax: number;
  readonly clock: Clock;
}

/**
 * The threads of a runner's slots. Most of the time from the start of a thread to its first record goes into loading
 * code, which needs no deployment: `warm` has threads do that beforehand, when a slot is claimed or an attempt is about to
 * stop for another one to follow. One that nobody takes ends by itself.
 */
export class SlotWorkers {
  readonly #options: SlotWorkersOptions;
  readonly #waiting = new Map<Worker, Timer>();
  #closed = false;

  constructor(options: SlotWorkersOptions) {
    this.#options = options;
  }

  /** Has at least so many threads wait, as far as the runner's slots allow. */
  warm(count: number): void {
    const { budget, warmMax, clock } = this.#options;
    while (!this.#closed && this.#waiting.size < Math.min(count, warmMax)) {
      const worker = startWorker(budget);
      const forget = (): void => this.#forget(worker);
      // A thread that fails while it waits is one less: whoever needs one starts another.
      worker.once('error', forget).once('exit', forget);
      this.#waiting.set(
        worker,
        clock.schedule(warmMs, () => this.#end(worker)),
      );
    }
  }

  get warmCount(): number {
    return this.#waiting.size;
  }

  /** A thread that waits for its deployment. Whoever takes it ends it. */
  take(): Worker {
    for (const worker of this.#waiting.keys()) {
      this.#forget(worker);
      worker.removeAllListeners();
      return worker;
    }
    return startWorker(this.#options.budget);
  }

  /** Ends the threads that wait. Idempotent. */
  close(): void {
    this.#closed = true;
    for (const worker of this.#waiting.keys()) this.#end(worker);
  }

  #end(worker: Worker): void {
    this.#forget(worker);
    void worker.terminate();
  }

  #forget(worker: Worker): void {
    this.#waiting.get(worker)?.cancel();
    this.#waiting.delete(worker);
  }
}

function startWorker(budget: SlotBudget): Worker {
  return new Worker(new URL('./slot-thread.ts', import.meta.url), {
    name: 'slot',
    env: { ...process.env, NODE_COMPILE_CACHE: compileCache },
    resourceLimits: { maxYoungGenerationSizeMb: budget.youngHeapMb, maxOldGenerationSizeMb: budget.oldHeapMb },
  });
}
