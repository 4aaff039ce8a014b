import { isPending, type MaybePromise, MillraceError } from '@millrace/kernel';

export interface RequestBatcherOptions<Req, Res> {
  /** Answers in the order of the requests, one each. */
  execute(batch: readonly Req[]): MaybePromise<readonly Res[]>;
  /** Requests in a batch, at most. Default 1000. */
  readonly countMax?: number;
  /** Bytes in a batch, at most, unless a single request has more. Default: no limit; needs `sizeOf`. */
  readonly sizeBytesMax?: number;
  sizeOf?(request: Req): number;
  /** Calls `flush` once when the tick is over. Default `afterMicrotasks`. */
  readonly schedule?: (flush: () => void) => void;
}

interface Batch<Req, Res> {
  readonly requests: Req[];
  readonly waiters: PromiseWithResolvers<Res>[];
  sizeBytes: number;
}

/**
 * Collects the requests that many records make in one tick and sends them as one batch; earlier when a limit is reached.
 * How many batches are out is bounded by the records in flight, as each request belongs to one.
 */
export class RequestBatcher<Req, Res> {
  readonly #options: RequestBatcherOptions<Req, Res>;
  readonly #countMax: number;
  readonly #sizeBytesMax: number;
  readonly #schedule: (flush: () => void) => void;
  readonly #out = new Set<Batch<Req, Res>>();
  #next: Batch<Req, Res> = emptyBatch();
  #scheduled = false;
  #failed = false;
  #failure: unknown;

  constructor(options: RequestBatcherOptions<Req, Res>) {
    this.#options = options;
    this.#countMax = options.countMax ?? 1000;
    this.#sizeBytesMax = options.sizeBytesMax ?? Number.POSITIVE_INFINITY;
    this.#schedule = options.schedule ?? afterMicrotasks;
    if (!(this.#countMax >= 1)) throw new MillraceError('bad-setting', `countMax is ${this.#countMax}; at least 1`);
    if (!(this.#sizeBytesMax >= 1)) {
      throw new MillraceError('bad-setting', `sizeBytesMax is ${this.#sizeBytesMax}; at least 1`);
    }
  }

  /** Requests that have no answer. */
  get pending(): number {
    let count = this.#next.requests.length;
    for (const batch of this.#out) count += batch.requests.length;
    return count;
  }

  request(request: Req): Promise<Res> {
    if (this.#failed) return Promise.reject(this.#failure as Error);
    const sizeBytes = this.#options.sizeOf?.(request) ?? 0;
    if (this.#next.sizeBytes + sizeBytes > this.#sizeBytesMax) this.flush();
    const batch = this.#next;
    const waiter = Promise.withResolvers<Res>();
    batch.requests.push(request);
    batch.waiters.push(waiter);
    batch.sizeBytes += sizeBytes;
    if (batch.requests.length >= this.#countMax) this.flush();
    else if (!this.#scheduled) {
      this.#scheduled = true;
      this.#schedule(this.#tick);
    }
    return waiter.promise;
  }

  /** Sends what has been collected, without waiting for the end of the tick. */
  flush(): void {
    const batch = this.#next;
    if (batch.requests.length === 0) return;
    this.#next = emptyBatch();
    this.#out.add(batch);
    let answers: MaybePromise<readonly Res[]>;
    try {
      answers = this.#options.execute(batch.requests);
    } catch (error) {
      return this.#reject(batch, error);
    }
    if (!isPending(answers)) return this.#answer(batch, answers);
    answers.then(
      (late) => this.#answer(batch, late),
      (error: unknown) => this.#reject(batch, error),
    );
  }

  /** Rejects all that wait and all to come; answers that arrive later are ignored. */
  fail(error: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#failure = error;
    const batches = [...this.#out, this.#next];
    this.#next = emptyBatch();
    this.#out.clear();
    for (const batch of batches) for (const waiter of batch.waiters) waiter.reject(error);
  }

  readonly #tick = (): void => {
    this.#scheduled = false;
    this.flush();
  };

  #answer(batch: Batch<Req, Res>, answers: readonly Res[]): void {
    if (!this.#out.has(batch)) return;
    const { requests, waiters } = batch;
    if (answers.length !== requests.length) {
      const message = `a batch of ${requests.length} requests got ${answers.length} answers`;
      return this.#reject(batch, new MillraceError('invariant-broken', message));
    }
    this.#out.delete(batch);
    for (let i = 0; i < waiters.length; i++) waiters[i]?.resolve(answers[i] as Res);
  }

  #reject(batch: Batch<Req, Res>, error: unknown): void {
    if (!this.#out.delete(batch)) return;
    for (const waiter of batch.waiters) waiter.reject(error);
  }
}

/**
 * When all callbacks that are due have run: what the input loop asks in one run and what the callbacks of one answer ask,
 * however many promises lie between, leaves together. A microtask alone would come before continuations that need
 * several; `setImmediate` would wait for a turn of the event loop, which the latency of each access would pay. The
 * microtask makes it hold from a timer's callback, too, where ticks come before microtasks.
 */
export function afterMicrotasks(flush: () => void): void {
  queueMicrotask(() => process.nextTick(flush));
}

function emptyBatch<Req, Res>(): Batch<Req, Res> {
  return { requests: [], waiters: [], sizeBytes: 0 };
}
