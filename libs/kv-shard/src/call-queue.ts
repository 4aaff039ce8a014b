import { type MaybePromise, MillraceError } from '@millrace/kernel';

type Call<W> =
  | { readonly kind: 'write'; readonly write: W; readonly costBytes: number }
  /** Looks at the data between two changes; synchronous. */
  | { readonly kind: 'look'; run(): void; reject(error: MillraceError): void }
  /** Nothing changes the data while it runs, but itself when it is a `change`. */
  | { readonly kind: 'hold' | 'change'; run(): Promise<void>; reject(error: MillraceError): void };

export interface CallQueueOptions<W> {
  /** Applies writes that were issued one after the other, in order. */
  readonly apply: (writes: readonly W[]) => Promise<void>;
  /** Bytes of writes that may wait before {@link CallQueue.write} is backpressure. */
  readonly waitingBytesMax: number;
  /** Writes are applied together up to this size. */
  readonly batchBytesMax: number;
}

/**
 * Calls on a table in the order in which they were issued, on an engine whose writes take time: writes that wait are applied
 * together, and what looks at the data sees exactly the writes issued before it. After a write that failed everything
 * fails: what the table holds is not known any more.
 */
export class CallQueue<W> {
  readonly #options: CallQueueOptions<W>;
  #calls: Call<W>[] = [];
  #waitingBytes = 0;
  /** Calls that change the data and are not done. */
  #changes = 0;
  #running: Promise<void> | undefined;
  #room: PromiseWithResolvers<void> | undefined;
  #failure: MillraceError | undefined;

  constructor(options: CallQueueOptions<W>) {
    this.#options = options;
  }

  /** A promise is backpressure. */
  write(write: W, costBytes: number): MaybePromise<void> {
    this.#check();
    this.#push({ kind: 'write', write, costBytes });
    this.#waitingBytes += costBytes;
    if (this.#waitingBytes <= this.#options.waitingBytesMax) return undefined;
    this.#room ??= Promise.withResolvers();
    this.#room.promise.catch(() => undefined);
    return this.#room.promise;
  }

  /** What `take` returns when every write issued so far is applied and no later one has begun; at once when it can be. */
  look<T>(take: () => T): MaybePromise<T> {
    this.#check();
    if (this.#changes === 0) return take();
    return new Promise((resolve, reject) => {
      this.#push({
        kind: 'look',
        reject,
        run: () => {
          try {
            resolve(take());
          } catch (error) {
            reject(MillraceError.from(error));
          }
        },
      });
    });
  }

  /** Runs `work` behind all changes issued so far and before every later one. */
  hold<T>(work: () => Promise<T>): Promise<T> {
    return this.#exclusive('hold', work);
  }

  /** As {@link hold}, for work that changes the data itself. */
  change<T>(work: () => Promise<T>): Promise<T> {
    return this.#exclusive('change', work);
  }

  /** Refuses what waits and what comes with `error`; resolves when nothing runs any more. */
  async close(error: MillraceError): Promise<void> {
    this.#fail(error);
    await this.#running;
  }

  #exclusive<T>(kind: 'hold' | 'change', work: () => Promise<T>): Promise<T> {
    try {
      this.#check();
    } catch (error) {
      return Promise.reject(error as Error);
    }
    return new Promise((resolve, reject) => {
      this.#push({ kind, reject, run: () => work().then(resolve, reject) });
    });
  }

  #check(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  #push(call: Call<W>): void {
    this.#calls.push(call);
    if (call.kind === 'write' || call.kind === 'change') this.#changes++;
    this.#running ??= this.#run();
  }

  /** Begins at once: a call that is alone is under way when `#push` returns. */
  async #run(): Promise<void> {
    for (;;) {
      const call = this.#calls[0];
      if (call === undefined) break;
      if (call.kind === 'write') {
        await this.#apply();
        continue;
      }
      this.#calls.shift();
      await call.run();
      if (call.kind === 'change') this.#changes--;
    }
    // In the same step in which nothing was left: who pushes from here on begins anew.
    this.#running = undefined;
  }

  async #apply(): Promise<void> {
    const writes: W[] = [];
    let bytes = 0;
    for (const call of this.#calls) {
      if (call.kind !== 'write' || (writes.length > 0 && bytes + call.costBytes > this.#options.batchBytesMax)) break;
      writes.push(call.write);
      bytes += call.costBytes;
    }
    this.#calls.splice(0, writes.length);
    try {
      await this.#options.apply(writes);
    } catch (error) {
      this.#fail(MillraceError.from(error));
    }
    this.#changes -= writes.length;
    this.#waitingBytes -= bytes;
    if (this.#waitingBytes <= this.#options.waitingBytesMax / 2) this.#releaseRoom((room) => room.resolve());
  }

  #fail(error: MillraceError): void {
    this.#failure ??= error;
    const failure = this.#failure;
    for (const call of this.#calls.splice(0)) if (call.kind !== 'write') call.reject(failure);
    this.#releaseRoom((room) => room.reject(failure));
  }

  #releaseRoom(how: (room: PromiseWithResolvers<void>) => void): void {
    const room = this.#room;
    this.#room = undefined;
    if (room !== undefined) how(room);
  }
}
