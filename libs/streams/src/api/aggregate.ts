import type { Codec } from '@millrace/state';
import type { Duration } from './duration.ts';
import type { KeyedOptions } from './execution.ts';
import type { SideTag } from './side-tag.ts';
import type { Window } from './windows.ts';

export interface WindowOptions<T> extends KeyedOptions {
  /** How long after its end a window still takes records; each then emits the window's result anew. Default 0. */
  readonly allowedLateness?: Duration;
  /** Where records go that come later still; without it they are dropped and counted. */
  readonly late?: SideTag<T>;
}

/** Folds the records of a key into an accumulator, one by one. */
export interface AggregateSpec<K, T, A, U> extends KeyedOptions {
  readonly accumulator: Codec<A>;
  readonly output: Codec<U>;
  create(): A;
  /** May change and return `accumulator`. */
  add(accumulator: A, record: T): A;
  result(accumulator: A, key: K): U;
}

/** Folds the records of a key and window into an accumulator; `result` is emitted when the window's time has passed. */
export interface WindowAggregateSpec<K, T, A, U> {
  readonly accumulator: Codec<A>;
  readonly output: Codec<U>;
  create(): A;
  /** May change and return `accumulator`. */
  add(accumulator: A, record: T): A;
  result(accumulator: A, key: K, window: Window): U;
}

/** Pairs the records of two streams that have the same key. */
export interface JoinSpec<K, L, R, U> extends KeyedOptions {
  readonly left: JoinSide<L>;
  readonly right: JoinSide<R>;
  /** How long a record waits for its partners, by the machine's clock. Default 24 hours. */
  readonly ttl?: Duration;
  readonly output: Codec<U>;
  pair(left: L, right: R, key: K): U;
}

export interface JoinSide<T> {
  readonly codec: Codec<T>;
  /** What tells records of one key apart; a later one with the same id replaces the earlier. Default: at most one per key. */
  readonly id?: (record: T) => string;
}

/** Pairs the records of two streams that have the same key and whose times lie near each other. */
export interface IntervalJoinSpec<K, L, R, U> extends KeyedOptions {
  /** A right record is a partner when its time is in [left + lower, left + upper]. */
  readonly lower: Duration;
  readonly upper: Duration;
  readonly left: Codec<L>;
  readonly right: Codec<R>;
  readonly output: Codec<U>;
  pair(left: L, right: R, key: K): U;
}
