import type { Codec } from '@millrace/state';
import type { Duration } from './duration.ts';
import type { KeyedOptions } from './execution.ts';

export interface DeduplicateOptions<T> extends KeyedOptions {
  /**
   * `first` (default): the first record of a key that comes; the others are dropped. `last`: each record that is not
   * older, by event time, than the newest so far of its key: what is emitted replaces what was emitted before.
   */
  readonly keep?: 'first' | 'last';
  /** How long a key is remembered, by the machine's clock, from the record that was emitted. Default 24 hours. */
  readonly ttl?: Duration;
  /** How the records are written between threads; default: as they came. */
  readonly codec?: Codec<T>;
}

/** Keeps the best records of each key. */
export interface TopNSpec<K, T, U> extends KeyedOptions {
  readonly n: number;
  /** Below zero when `a` is better than `b`. Of two that are equally good the earlier is better. */
  compare(a: T, b: T): number;
  /**
   * What a record is about: a later one with the same id replaces the earlier. One that has become worse does not bring
   * back those that it had pushed out. Default: each record is about something else.
   */
  readonly id?: (record: T) => string;
  /** How long the list of a key is kept after its last change, by the machine's clock. Default: for ever. */
  readonly ttl?: Duration;
  readonly codec: Codec<T>;
  readonly output: Codec<U>;
  /** Emitted when the list has changed; replaces what was emitted for the key before. */
  result(best: readonly T[], key: K): U;
}
