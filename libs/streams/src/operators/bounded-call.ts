import { withTimeout } from '@millrace/aec';
import { type Clock, isPending, type MaybePromise, MillraceError, type Random, sleep } from '@millrace/kernel';
import type { AsyncContext, CallOptions } from '../api/async-map.ts';
import { durationMs } from '../api/duration.ts';

/** {@link CallOptions}, checked and with the defaults. */
export interface CallPolicy {
  readonly timeoutMs: number;
  readonly concurrency: number;
  readonly attempts: number;
  readonly backoffMs: number;
  readonly backoffMaxMs: number;
  readonly when: (error: unknown) => boolean;
}

export function callPolicy(options: CallOptions): CallPolicy {
  const { retry } = options;
  return {
    timeoutMs: positive('timeout', durationMs(options.timeout ?? 60_000, 'timeout')),
    concurrency: positive('concurrency', options.concurrency ?? 100),
    attempts: positive('retry.attempts', retry?.attempts ?? 1),
    backoffMs: positive('retry.backoff', durationMs(retry?.backoff ?? 100, 'retry.backoff')),
    backoffMaxMs: positive('retry.backoffMax', durationMs(retry?.backoffMax ?? 10_000, 'retry.backoffMax')),
    when: retry?.when ?? ((): boolean => true),
  };
}

function positive(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new MillraceError('bad-argument', `${name} is ${value}; it has to be a whole number of at least 1`);
}

/** What the calls of one subtask share. */
export class CallHost {
  readonly operator: string;
  readonly policy: CallPolicy;
  readonly clock: Clock;
  readonly random: Random;
  /** Calls that have not answered yet; told to stop when the operator closes. */
  readonly open = new Set<AbortController>();

  constructor(operator: string, policy: CallPolicy, slot: { readonly clock: Clock; readonly random: Random }) {
    this.operator = operator;
    this.policy = policy;
    this.clock = slot.clock;
    this.random = slot.random;
  }

  close(): void {
    for (const abort of this.open) abort.abort();
    this.open.clear();
  }
}

/**
 * One call of an author's asynchronous function: its tries, the waits between them and the limit of time over all. It
 * settles once; what the function does after its time is ignored, whatever it is. A function that answers at once costs
 * no timer and no promise.
 */
export class BoundedCall<R> implements AsyncContext {
  readonly timestampMs: number;
  attempt = 0;
  readonly #host: CallHost;
  readonly #call: (ctx: AsyncContext) => MaybePromise<R>;
  readonly #abort = new AbortController();

  constructor(host: CallHost, timestampMs: number, call: (ctx: AsyncContext) => MaybePromise<R>) {
    this.#host = host;
    this.timestampMs = timestampMs;
    this.#call = call;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  run(): MaybePromise<R> {
    this.attempt = 1;
    let first: MaybePromise<R>;
    try {
      first = this.#call(this);
      if (!isPending(first)) return first;
    } catch (error) {
      first = Promise.reject(error as Error);
    }
    const { policy, clock, operator, open } = this.#host;
    const abort = this.#abort;
    open.add(abort);
    return withTimeout(policy.attempts === 1 ? first : this.#tries(first), {
      timeoutMs: policy.timeoutMs,
      clock,
      what: `a call of ${operator}`,
      abort,
    }).finally(() => open.delete(abort));
  }

  async #tries(first: Promise<R>): Promise<R> {
    const { policy, clock, random } = this.#host;
    for (let answer = first; ; answer = this.#again()) {
      try {
        return await answer;
      } catch (error) {
        if (this.attempt >= policy.attempts || this.signal.aborted || !policy.when(error)) throw error;
      }
      const waitMs = Math.min(policy.backoffMaxMs, policy.backoffMs * 2 ** (this.attempt - 1));
      await sleep(clock, waitMs * (1 - random.float() / 2), this.signal);
      this.attempt++;
    }
  }

  async #again(): Promise<R> {
    return this.#call(this);
  }
}
