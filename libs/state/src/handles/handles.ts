import type { MaybePromise } from '@millrace/kernel';
import type {
  AggregatingDescriptor,
  ListDescriptor,
  MapDescriptor,
  ReducingDescriptor,
  StateShape,
  ValueDescriptor,
} from './descriptors.ts';

/*
 * What a handler sees of its states. Reads return the value itself when it is at hand and a promise only when it is
 * not, so job authors always `await`. Values belong to the state once set: change a copy, or change and `set` again.
 */

export interface ValueHandle<T> {
  get(): MaybePromise<T | undefined>;
  set(value: T): void;
  clear(): void;
  /** Replaces the value by `change(value)`; `undefined` clears it. Returns the new value. */
  update(change: (value: T | undefined) => T | undefined): MaybePromise<T | undefined>;
}

export interface ListHandle<T> {
  /** Empty when nothing was added. */
  get(): MaybePromise<readonly T[]>;
  add(value: T): MaybePromise<void>;
  addAll(values: readonly T[]): MaybePromise<void>;
  set(values: readonly T[]): void;
  clear(): void;
}

/** `[from, until)` in the order of the encoded map keys (`keyCodec` keeps the order of numbers and of strings). */
export interface MapRange<K> {
  readonly from?: K | undefined;
  readonly until?: K | undefined;
}

export interface MapHandle<K, V> {
  get(key: K): MaybePromise<V | undefined>;
  set(key: K, value: V): void;
  delete(key: K): void;
  has(key: K): MaybePromise<boolean>;
  /** As of the call, in the order of the encoded keys, page by page; the map may be changed meanwhile. */
  entries(range?: MapRange<K>): AsyncIterable<readonly [K, V]>;
  keys(range?: MapRange<K>): AsyncIterable<K>;
  clear(): MaybePromise<void>;
}

export interface ReducingHandle<T> {
  get(): MaybePromise<T | undefined>;
  add(value: T): MaybePromise<void>;
  clear(): void;
  /** Folds the other's value into this one and clears the other: for merging windows. */
  mergeFrom(other: ReducingHandle<T>): MaybePromise<void>;
}

export interface AggregatingHandle<In, Out> {
  /** `undefined` before the first `add`. */
  get(): MaybePromise<Out | undefined>;
  add(value: In): MaybePromise<void>;
  clear(): void;
  /** Merges the other's accumulator into this one and clears the other; needs `merge` in the aggregate. */
  mergeFrom(other: AggregatingHandle<In, Out>): MaybePromise<void>;
}

export type HandleOf<D> =
  D extends ValueDescriptor<infer T>
    ? ValueHandle<T>
    : D extends ListDescriptor<infer T>
      ? ListHandle<T>
      : D extends MapDescriptor<infer K, infer V>
        ? MapHandle<K, V>
        : D extends ReducingDescriptor<infer T>
          ? ReducingHandle<T>
          : D extends AggregatingDescriptor<infer In, infer _Acc, infer Out>
            ? AggregatingHandle<In, Out>
            : never;

/** `ctx.state` of a handler: a handle for each declared state. */
export type StateFacade<S extends StateShape> = { readonly [Name in keyof S]: HandleOf<S[Name]> };
