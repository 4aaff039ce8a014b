import { AsyncExecutionController } from '@millrace/aec';
import { assert, isPending, type MaybePromise } from '@millrace/kernel';
import type { AsyncContext, CallOptions, ResultOrder } from '../api/async-map.ts';
import type { OperatorContext } from '../runtime/operator.ts';
import { BaseOperator } from './base-operator.ts';
import { BoundedCall, CallHost, type CallPolicy, callPolicy } from './bounded-call.ts';

/** What an asynchronous operator without key does with a record, its types erased. */
export interface AsyncWork {
  readonly options: CallOptions & { readonly order?: ResultOrder };
  call(record: unknown, ctx: AsyncContext): MaybePromise<unknown>;
  /** In place of the answer when the call has failed. */
  readonly fallback: ((record: unknown, error: unknown) => unknown) | undefined;
  /** What the answer makes of the record. */
  finish(record: unknown, answer: unknown, emit: (value: unknown) => void): void;
}

/** A record whose answer is awaited, and its place in the order of results. */
interface Pending {
  readonly record: unknown;
  readonly timestampMs: number;
  answer: unknown;
  answered: boolean;
  /** Ordered: tells the controller that the result has left. */
  left: (() => void) | undefined;
}

/**
 * Asynchronous calls for records without a key. To the execution controller each record is a key of its own, which gives
 * the bound, the place of watermarks and the drain before a snapshot: a checkpoint holds the effect of every record
 * before it and of none after it. Ordered results wait for those before them, and count as under way until they leave.
 */
export class AsyncMapOperator extends BaseOperator {
  readonly #work: AsyncWork;
  readonly #policy: CallPolicy;
  readonly #ordered: boolean;
  readonly #queue: Pending[] = [];
  #host: CallHost | undefined;
  #controller: AsyncExecutionController<number, Pending> | undefined;
  #records = 0;
  #closed = false;

  constructor(work: AsyncWork) {
    super();
    this.#work = work;
    this.#policy = callPolicy(work.options);
    this.#ordered = work.options.order !== 'unordered';
  }

  override open(context: OperatorContext): void {
    void super.open(context);
    this.#host = new CallHost(context.uid, this.#policy, context.slot);
    this.#controller = new AsyncExecutionController({
      inFlightLimit: this.#policy.concurrency,
      watermarks: 'parallel',
      handle: (pending) => (this.#ordered ? this.#inOrder(pending) : this.#asTheyCome(pending)),
      onFailure: (error) => context.fail(error),
    });
  }

  override record(record: unknown, timestampMs: number): void | Promise<void> {
    const pending = { record, timestampMs, answer: undefined, answered: false, left: undefined };
    return this.#aec.admit(this.#records++, pending);
  }

  override watermark(watermarkMs: number): void | Promise<void> {
    return this.#aec.watermark(() => this.output.watermark(watermarkMs));
  }

  override status(idle: boolean): void | Promise<void> {
    return this.#aec.mark(() => this.output.status(idle));
  }

  override drain(): void | Promise<void> {
    return this.#aec.drain();
  }

  override inFlight(): number {
    return this.#controller?.inFlight ?? 0;
  }

  override close(): Promise<void> {
    this.#closed = true;
    this.#host?.close();
    return Promise.resolve();
  }

  get #aec(): AsyncExecutionController<number, Pending> {
    assert(this.#controller !== undefined, 'operator used before it was opened');
    return this.#controller;
  }

  #asTheyCome(pending: Pending): void | Promise<void> {
    const answer = this.#call(pending);
    if (!isPending(answer)) return this.#finish(pending, answer);
    return answer.then((value) => this.#finish(pending, value));
  }

  #inOrder(pending: Pending): void | Promise<void> {
    const answer = this.#call(pending);
    if (!isPending(answer) && this.#queue.length === 0) return this.#finish(pending, answer);
    this.#queue.push(pending);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    pending.left = resolve;
    const settle = (value: unknown): void => {
      pending.answer = value;
      pending.answered = true;
      this.#leave();
    };
    if (isPending(answer)) answer.then(settle).catch(reject);
    else settle(answer);
    return promise;
  }

  /** Lets the results leave that no earlier one is missing for. */
  #leave(): void {
    let count = 0;
    for (const pending of this.#queue) {
      if (!pending.answered) break;
      this.#finish(pending, pending.answer);
      pending.left?.();
      count++;
    }
    this.#queue.splice(0, count);
  }

  #call({ record, timestampMs }: Pending): MaybePromise<unknown> {
    const work = this.#work;
    const { fallback } = work;
    const answer = new BoundedCall(this.#host as CallHost, timestampMs, (ctx) => work.call(record, ctx)).run();
    if (fallback === undefined || !isPending(answer)) return answer;
    return answer.catch((error: unknown) => fallback(record, error));
  }

  #finish({ record, timestampMs }: Pending, answer: unknown): void {
    // After a failure no result leaves.
    if (this.#closed || this.#aec.failure !== undefined) return;
    this.#work.finish(record, answer, (value) => this.output.emit(value, timestampMs));
  }
}
