import type { Codec } from '@millrace/state';
import type { Duration } from './duration.ts';
import type { KeyedOptions } from './execution.ts';
import type { SideTag } from './side-tag.ts';
import type { FixedWindows, SessionWindows, Window } from './windows.ts';

/** Which records without a partner are in the result, too. */
export type JoinKind = 'inner' | OuterKind;
export type OuterKind = 'left' | 'right' | 'full';

/** What `pair` gets: `undefined` in place of the partner that a record does not have. */
export type LeftOf<M extends JoinKind, L> = M extends 'right' | 'full' ? L | undefined : L;
export type RightOf<M extends JoinKind, R> = M extends 'left' | 'full' ? R | undefined : R;

export interface JoinSide<T> {
  readonly codec: Codec<T>;
  /** What tells records of one key apart; a later one with the same id replaces the earlier. Default: at most one per key. */
  readonly id?: (record: T) => string;
}

/** What joins by key have in common. */
export interface KeyedJoinOptions<L, R, U> extends KeyedOptions {
  readonly left: JoinSide<L>;
  readonly right: JoinSide<R>;
  /** How long a record waits for its partners, by the machine's clock. Default 24 hours. */
  readonly ttl?: Duration;
  readonly output: Codec<U>;
}

/** Pairs the records of two streams that have the same key. */
export interface JoinSpec<K, L, R, U> extends KeyedJoinOptions<L, R, U> {
  pair(left: L, right: R, key: K): U;
}

/** As {@link JoinSpec}, with the records that have no partner, too. */
export interface OuterJoinSpec<M extends OuterKind, K, L, R, U> extends KeyedJoinOptions<L, R, U> {
  readonly kind: M;
  /** A pure function of its arguments: what has been inserted is retracted by calling it again. */
  pair(left: LeftOf<M, L>, right: RightOf<M, R>, key: K): U;
}

/** Where the late records of the two sides go; without a tag they are dropped and counted. */
export interface LateTags<L, R> {
  readonly left?: SideTag<L>;
  readonly right?: SideTag<R>;
}

/** Pairs the records of two streams that have the same key and whose times lie near each other. */
export interface IntervalJoinSpec<K, L, R, U, M extends JoinKind = 'inner'> extends KeyedOptions {
  /** Default `inner`. With another one a record without partner is emitted once when none can come any more. */
  readonly kind?: M;
  /** A right record is a partner when its time is in [left + lower, left + upper]. */
  readonly lower: Duration;
  readonly upper: Duration;
  /** How far behind the watermark records may still come. Default 0. */
  readonly allowedLateness?: Duration;
  readonly late?: LateTags<L, R>;
  readonly left: Codec<L>;
  readonly right: Codec<R>;
  readonly output: Codec<U>;
  pair(left: LeftOf<M, L>, right: RightOf<M, R>, key: K): U;
}

/** Windows that close by themselves; a session goes on with the records of either side. */
export type JoinWindows<T> = FixedWindows | SessionWindows<T>;

/** Pairs the records of two streams that have the same key and lie in the same window. */
export interface WindowJoinSpec<K, L, R, U, M extends JoinKind = 'inner'> extends KeyedOptions {
  /** Default `inner`. */
  readonly kind?: M;
  readonly late?: LateTags<L, R>;
  readonly left: Codec<L>;
  readonly right: Codec<R>;
  readonly output: Codec<U>;
  pair(left: LeftOf<M, L>, right: RightOf<M, R>, key: K, window: Window): U;
}
