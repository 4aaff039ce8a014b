import { assert, MillraceError } from '@millrace/kernel';
import type { Advance, Epoch } from './epoch.ts';
import { EpochQueue } from './epoch-queue.ts';
import { Gate } from './gate.ts';
import { Lane } from './lane.ts';
import { type AecOptions, type AecSettings, compileAecOptions } from './options.ts';
import { type Work, WorkPool, WorkQueue } from './work.ts';

/**
 * Runs the records of one subtask: those of one key one at a time in order, those of different keys concurrently, at
 * most `inFlightLimit` together. Watermarks wait for the records before them and for the timers they fire. SPEC.md has
 * the promises A1–A8.
 *
 * The caller is one input loop: it awaits what `admit`, `watermark` and `mark` return before it calls one of them
 * again. A failure that is already known is thrown by the call, a later one rejects what the call has returned.
 *
 * Costs: a record whose handler returns no promise is finished when `admit` returns and allocates nothing here. An
 * asynchronous one costs a map entry and one `then`; lanes and waiting records are recycled.
 *
 * `K` is a primitive, or an object that is one and the same for equal keys: it is the key of a Map.
 */
export class AsyncExecutionController<K, R> {
  readonly #options: AecOptions<K, R>;
  readonly #limit: number;
  readonly #watermarksWaitingMax: number;
  readonly #lanes = new Map<K, Lane<K, R>>();
  readonly #freeLanes: Lane<K, R>[] = [];
  readonly #pool: WorkPool<K, R>;
  /** Derived work of free keys, made while a handler runs; starts when that handler has returned. */
  readonly #derived = new WorkQueue<K, R>();
  readonly #epochs: EpochQueue;
  /** The record that arrived at the limit. */
  #parked: Work<K, R> | undefined;
  /** What the input loop awaits. */
  #inputGate: Gate | undefined;
  #roomGate: Gate | undefined;
  #drainGate: Gate | undefined;
  /** The synchronous part of a handler is on the stack. */
  #running = false;
  #inFlight = 0;
  #buffered = 0;
  #failed = false;
  #failure: unknown;

  constructor(options: AecOptions<K, R>) {
    const settings: AecSettings = compileAecOptions(options);
    this.#options = options;
    this.#limit = settings.inFlightLimit;
    this.#watermarksWaitingMax = settings.watermarksWaitingMax;
    this.#pool = new WorkPool(settings.inFlightLimit);
    this.#epochs = new EpochQueue({ advanced: () => this.#wake(), failed: (error) => this.fail(error) });
  }

  /** Records in flight, waiting for their key, and derived; the record that waits at the limit is not yet one. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Of those, the ones that wait for their key (the blocking buffer). */
  get buffered(): number {
    return this.#buffered;
  }

  /** Watermarks and marks that have arrived and not left. */
  get watermarksWaiting(): number {
    return this.#epochs.size;
  }

  /** The first failure, always an Error; undefined while there is none. */
  get failure(): unknown {
    return this.#failure;
  }

  /**
   * Takes a record of the input. Nothing: it is admitted. A promise: the limit is reached; it resolves when the record is
   * admitted, and the input waits for it.
   */
  admit(key: K, record: R): void | Promise<void> {
    if (this.#failed || this.#running || this.#inputGate !== undefined) this.#refuse();
    if (this.#inFlight >= this.#limit) {
      this.#parked = this.#pool.take(key, record, this.#epochs.open);
      this.#inputGate = new Gate();
      return this.#inputGate.promise;
    }
    this.#enter(key, record);
    if (this.#failed) throw this.#failure;
    return undefined;
  }

  /**
   * Takes work that follows from other work: a timer, or what a handler spawns. It may exceed the limit, goes before
   * waiting input of its key, and belongs to `epoch`, whose watermark waits for it. A handler passes the epoch of its own
   * record, which is the default only until its first await. Otherwise the default is the epoch whose advance is going
   * on, or the open one (a timer of the processing time). Never wait in a handler for work derived from it.
   *
   * Work of a free key starts at once, except in the synchronous part of a handler: then when that has returned.
   */
  derive(key: K, record: R, epoch: Epoch = this.#epochs.current): void {
    if (this.#failed) throw this.#failure;
    if (epoch.stage === 'finished') throw this.#deriveAfterFinish(key);
    const lane = this.#lanes.size === 0 ? undefined : this.#lanes.get(key);
    if (lane === undefined && !this.#running) return this.#start(key, record, epoch);
    this.#count(epoch);
    (lane?.derived ?? this.#derived).push(this.#pool.take(key, record, epoch));
  }

  /**
   * Nothing when less than the limit is in flight, else a promise for that. An advance that fires many timers asks
   * between them; a handler must not (it would wait for itself). Ask again after the promise: others wait, too.
   */
  room(): void | Promise<void> {
    if (this.#failed) throw this.#failure;
    if (this.#inFlight < this.#limit) return undefined;
    this.#roomGate ??= new Gate();
    return this.#roomGate.promise;
  }

  /**
   * Takes a watermark. When the records before it are finished and the watermarks before it have left, `advance` fires its
   * timers; when all that these do has finished, too, `emit` is called, once.
   *
   * Nothing is returned when the input may go on: in serial mode after `emit`, in parallel mode while fewer than
   * `watermarksWaitingMax` wait. Else a promise for that.
   */
  watermark(emit: () => void, advance?: Advance): void | Promise<void> {
    if (this.#failed || this.#running || this.#inputGate !== undefined) this.#refuse();
    this.#epochs.close(emit, advance);
    this.#wake();
    if (this.#failed) throw this.#failure;
    if (this.#epochs.size <= this.#watermarksWaitingMax) return undefined;
    this.#inputGate = new Gate();
    return this.#inputGate.promise;
  }

  /** Takes what has a place among the watermarks and fires no timers: the idle or active status. As `watermark`. */
  mark(emit: () => void): void | Promise<void> {
    return this.watermark(emit);
  }

  /**
   * Nothing when no record is in flight or waits, no derived work is left and all watermarks have left; else a promise for
   * that. Who snapshots asks until nothing is returned: a timer of the processing time may come between the promise
   * and its awaiter.
   */
  drain(): void | Promise<void> {
    if (this.#failed) throw this.#failure;
    if (this.#drained()) return undefined;
    this.#drainGate ??= new Gate();
    return this.#drainGate.promise;
  }

  /**
   * Ends everything with this failure, if it is the first: no handler starts, no watermark leaves, all who wait are
   * rejected. Handlers in flight run on; what becomes of them is ignored.
   */
  fail(error: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#failure = error instanceof Error ? error : MillraceError.from(error);
    this.#inFlight -= this.#buffered;
    this.#buffered = 0;
    this.#lanes.clear();
    this.#freeLanes.length = 0;
    this.#derived.clear();
    this.#epochs.clear();
    this.#parked = undefined;
    for (const gate of [this.#inputGate, this.#roomGate, this.#drainGate]) gate?.reject(this.#failure);
    this.#options.onFailure?.(this.#failure);
  }

  #enter(key: K, record: R): void {
    const epoch = this.#epochs.open;
    const lane = this.#lanes.size === 0 ? undefined : this.#lanes.get(key);
    if (lane === undefined) return this.#start(key, record, epoch);
    this.#count(epoch);
    lane.waiting.push(this.#pool.take(key, record, epoch));
  }

  /** Work that has to wait: for its key, or for the running handler to return. */
  #count(epoch: Epoch): void {
    this.#inFlight++;
    this.#buffered++;
    epoch.pending++;
  }

  /** Runs a record of a free key. Its epoch is held by its parent, by the advance or by being open until it is counted. */
  #start(key: K, record: R, epoch: Epoch): void {
    const pending = this.#run(key, record, epoch);
    if (pending !== undefined) {
      this.#inFlight++;
      epoch.pending++;
      this.#occupy(key, epoch, pending);
    }
    if (!this.#derived.empty) this.#startDerived();
  }

  #run(key: K, record: R, epoch: Epoch): Promise<void> | undefined {
    const epochs = this.#epochs;
    const outer = epochs.current;
    this.#running = true;
    if (outer !== epoch) epochs.current = epoch;
    try {
      const result: unknown = this.#options.handle(record, key, epoch);
      return result === undefined ? undefined : asPromise(result);
    } catch (error) {
      this.fail(error);
      return undefined;
    } finally {
      this.#running = false;
      if (outer !== epoch) epochs.current = outer;
    }
  }

  #occupy(key: K, epoch: Epoch, pending: Promise<void>): void {
    let lane = this.#freeLanes.pop();
    if (lane === undefined) {
      lane = new Lane(key, epoch, this.#laneDone, this.#laneFailed);
    } else {
      lane.key = key;
      lane.epoch = epoch;
    }
    this.#lanes.set(key, lane);
    pending.then(lane.onDone, lane.onFail);
  }

  readonly #laneDone = (lane: Lane<K, R>): void => {
    this.#inFlight--;
    if (this.#failed) return;
    lane.epoch.pending--;
    this.#continue(lane);
    this.#wake();
  };

  readonly #laneFailed = (_lane: Lane<K, R>, error: unknown): void => {
    this.#inFlight--;
    this.fail(error);
  };

  /** Runs what waits for the key, in a loop: a hundred thousand synchronous records of one key do not deepen the stack. */
  #continue(lane: Lane<K, R>): void {
    for (let work = next(lane); work !== undefined; work = next(lane)) {
      const { record, epoch } = work;
      this.#pool.give(work);
      this.#buffered--;
      const pending = this.#run(lane.key, record, epoch);
      if (pending !== undefined) {
        lane.epoch = epoch;
        pending.then(lane.onDone, lane.onFail);
      } else {
        this.#inFlight--;
        epoch.pending--;
      }
      if (!this.#derived.empty) this.#startDerived();
      if (pending !== undefined || this.#failed) return;
    }
    this.#lanes.delete(lane.key);
    lane.key = undefined as K;
    if (this.#freeLanes.length < this.#limit) this.#freeLanes.push(lane);
  }

  /** Starts derived work of keys that were free when it was made; more of it may be made meanwhile. */
  #startDerived(): void {
    for (let work = this.#derived.shift(); work !== undefined; work = this.#derived.shift()) {
      const { key, record, epoch } = work;
      const lane = this.#lanes.get(key);
      if (lane !== undefined) {
        lane.derived.push(work);
        continue;
      }
      this.#pool.give(work);
      this.#buffered--;
      const pending = this.#run(key, record, epoch);
      if (pending !== undefined) {
        this.#occupy(key, epoch, pending);
      } else {
        this.#inFlight--;
        epoch.pending--;
      }
    }
  }

  /**
   * After work has finished. Order: watermarks with their timers, then the waiting input, then who waits for rest. When one of
   * these fails, the gates that are opened after it have been rejected by then.
   */
  #wake(): void {
    if (this.#failed) return;
    this.#epochs.pass();
    if (this.#inFlight < this.#limit) {
      if (this.#parked !== undefined) this.#admitParked(this.#parked);
      this.#roomGate = this.#roomGate?.open();
    }
    if (this.#parked === undefined && this.#epochs.size <= this.#watermarksWaitingMax) {
      this.#inputGate = this.#inputGate?.open();
    }
    if (this.#drainGate !== undefined && this.#drained()) this.#drainGate = this.#drainGate.open();
  }

  #admitParked(work: Work<K, R>): void {
    const { key, record } = work;
    this.#parked = undefined;
    this.#pool.give(work);
    this.#enter(key, record);
  }

  #drained(): boolean {
    return this.#inFlight === 0 && this.#parked === undefined && this.#epochs.size === 0;
  }

  #refuse(): never {
    if (this.#failed) throw this.#failure;
    assert(!this.#running, 'a handler gave its own controller a record or a watermark; it has to derive work instead');
    assert(false, 'the input went on before the promise of its last record or watermark had resolved');
  }

  #deriveAfterFinish(key: K): unknown {
    this.fail(
      new MillraceError(
        'aec-access-after-finish',
        `work for key ${String(key)} was derived after the record that it belongs to had finished; await everything that the handler starts`,
      ),
    );
    return this.#failure;
  }
}

function next<K, R>(lane: Lane<K, R>): Work<K, R> | undefined {
  return lane.derived.empty ? lane.waiting.shift() : lane.derived.shift();
}

/** Handlers of job authors may return anything; what has a `then` (a query builder, say) is awaited like a promise. */
function asPromise(result: unknown): Promise<void> | undefined {
  if (result instanceof Promise) return result as Promise<void>;
  if (typeof result !== 'object' || result === null || !('then' in result)) return undefined;
  return typeof result.then === 'function' ? Promise.resolve(result as PromiseLike<void>) : undefined;
}
