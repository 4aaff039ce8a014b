import type { Codec } from '@millrace/state';
import type { Duration } from './duration.ts';
import type { KeyedOptions } from './execution.ts';
import type { SideTag } from './side-tag.ts';
import type { EarlyFiring, Trigger } from './trigger.ts';
import type { Window } from './windows.ts';

export interface WindowOptions<T> extends KeyedOptions {
  /** How long after its end a window still takes records; each then emits the window's result anew. Default 0. */
  readonly allowedLateness?: Duration;
  /** Where records go that come later still; without it they are dropped and counted. */
  readonly late?: SideTag<T>;
  /** Results before the end of the window. */
  readonly early?: EarlyFiring;
  /** Says when the window emits, in place of `early`. */
  readonly trigger?: Trigger<T, unknown>;
}

/** Folds the records of a key into an accumulator, one by one. */
export interface AggregateSpec<K, T, A, U> extends KeyedOptions {
  readonly accumulator: Codec<A>;
  /** How long a key's accumulator is kept after its last record, by the machine's clock. Default: for ever. */
  readonly ttl?: Duration;
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
  /** Sessions that become one: `left` has the earlier record. May change and return `left`. */
  merge?(left: A, right: A): A;
  result(accumulator: A, key: K, window: Window): U;
}

/** What windows need that may become one: sessions. */
export interface MergingAggregateSpec<K, T, A, U> extends WindowAggregateSpec<K, T, A, U> {
  merge(left: A, right: A): A;
}

/** Sees all records of a key and window, each time that the window emits. */
export interface WindowProcessSpec<K, T, U> {
  readonly output: Codec<U>;
  /** How the records are kept until then; default as they are written between threads. */
  readonly records?: Codec<T>;
  /** `records` in the order in which they came (sessions that became one: first those of the one, then of the other). */
  process(records: readonly T[], ctx: WindowContext<K, U>): void | Promise<void>;
}

export interface WindowContext<K, U> {
  readonly key: K;
  readonly window: Window;
  readonly watermarkMs: number;
  /** The machine's clock. */
  readonly processingMs: number;
  /** Sends a result on, with the last timestamp of the window. */
  readonly emit: (value: U) => void;
  /** Sends to a side output. */
  readonly side: <X>(tag: SideTag<X>, value: X) => void;
}
