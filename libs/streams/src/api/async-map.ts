import type { Codec } from '@millrace/state';
import type { Duration } from './duration.ts';
import type { KeyedOptions } from './execution.ts';
import type { OperatorOptions } from './process.ts';

/** What an asynchronous function is told beside its input. */
export interface AsyncContext {
  /** Event time of the record. */
  readonly timestampMs: number;
  /** 1 for the first try. */
  readonly attempt: number;
  /** Aborted when the time is over or the job stops: hand it to `fetch` and the like. */
  readonly signal: AbortSignal;
}

export interface RetryOptions {
  /** Tries in all, the first one included. */
  readonly attempts: number;
  /** Wait before the second try; doubled before each further one, and shortened at random by up to a half. Default 100 ms. */
  readonly backoff?: Duration;
  /** The longest wait. Default 10 s. */
  readonly backoffMax?: Duration;
  /** False: not again. Default: again after every failure. */
  readonly when?: (error: unknown) => boolean;
}

/** How calls to the outside are bounded. They are repeated after a failure of the job: each happens at least once. */
export interface CallOptions {
  /** For a record, all tries and waits together. Default one minute. What comes later is ignored. */
  readonly timeout?: Duration;
  readonly retry?: RetryOptions;
  /** Calls under way in one subtask. Default 100. */
  readonly concurrency?: number;
}

/** `ordered`: results leave in the order of their records; `unordered`: as they come, but never behind a watermark. */
export type ResultOrder = 'ordered' | 'unordered';

export interface AsyncMapOptions<T, U> extends OperatorOptions, CallOptions {
  /** How the results are written between threads; default msgpack. */
  readonly codec?: Codec<U>;
  /** Default `ordered`. */
  readonly order?: ResultOrder;
  /** The result when the last try has failed or the time is over; without it the job fails. */
  readonly fallback?: (record: T, error: unknown) => U;
}

/** Joins a stream with what an asynchronous function finds for each record. */
export interface LookupJoinSpec<T, R, U, M extends 'inner' | 'left' = 'inner'> extends OperatorOptions, CallOptions {
  /** Default `inner`: a record for which nothing is found is dropped. `left`: it is paired with `undefined`. */
  readonly kind?: M;
  /** What belongs to the record; `undefined` when there is nothing. */
  lookup(record: T, ctx: AsyncContext): Promise<R | undefined> | R | undefined;
  readonly output: Codec<U>;
  /** Default `ordered`. */
  readonly order?: ResultOrder;
  /** What counts as found when the last try has failed or the time is over; without it the job fails. */
  readonly fallback?: (record: T, error: unknown) => R | undefined;
  pair(record: T, found: M extends 'left' ? R | undefined : R): U;
}

/** As {@link LookupJoinSpec}, by key: results of one key leave in order, those of different keys as they come. */
export interface KeyedLookupJoinSpec<K, T, R, U, M extends 'inner' | 'left' = 'inner'>
  extends KeyedOptions,
    CallOptions {
  /** Default `inner`: a record for which nothing is found is dropped. `left`: it is paired with `undefined`. */
  readonly kind?: M;
  /** What belongs to the key; `undefined` when there is nothing. */
  lookup(key: K, ctx: AsyncContext): Promise<R | undefined> | R | undefined;
  /** Keeps what was found, also nothing, in the state of the key: it is asked for again when its time is over. */
  readonly cache?: { readonly codec: Codec<R>; readonly ttl: Duration };
  readonly output: Codec<U>;
  /** What counts as found when the last try has failed or the time is over, not cached; without it the job fails. */
  readonly fallback?: (key: K, error: unknown) => R | undefined;
  pair(record: T, found: M extends 'left' ? R | undefined : R, key: K): U;
}
