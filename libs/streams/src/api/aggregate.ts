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
