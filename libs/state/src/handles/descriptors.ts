import { MillraceError } from '@millrace/kernel';
import type { Codec } from '../codec.ts';
import { normaliseTtl, type Ttl, type TtlOptions } from './ttl.ts';

export interface StateOptions {
  /** Time to live of each entry (of a map: of each of its entries); without it, entries live until cleared. */
  readonly ttl?: TtlOptions;
}

export interface SingleOptions extends StateOptions {
  /**
   * The single values of a key are stored, read and written together. One that is large and changes seldom is better
   * stored apart, as is one that handlers write and never read. Default false; takes effect for a new state.
   */
  readonly apart?: boolean;
}

export interface ValueDescriptor<T> {
  readonly kind: 'value';
  readonly apart: boolean;
  readonly codec: Codec<T>;
  readonly ttl: Ttl | undefined;
}

export interface ListDescriptor<T> {
  readonly kind: 'list';
  readonly codec: Codec<T>;
  readonly ttl: Ttl | undefined;
}

export interface MapDescriptor<K, V> {
  readonly kind: 'map';
  readonly keyCodec: Codec<K>;
  readonly codec: Codec<V>;
  readonly ttl: Ttl | undefined;
}

export interface ReducingDescriptor<T> {
  readonly kind: 'reducing';
  readonly apart: boolean;
  readonly codec: Codec<T>;
  readonly ttl: Ttl | undefined;
  reduce(left: T, right: T): T;
}

/** How values become an accumulator and an accumulator a result. */
export interface Aggregate<In, Acc, Out> {
  create(): Acc;
  add(accumulator: Acc, value: In): Acc;
  /** Needed where windows merge. */
  merge?(left: Acc, right: Acc): Acc;
  result(accumulator: Acc): Out;
}

export interface AggregatingDescriptor<In, Acc, Out> {
  readonly kind: 'aggregating';
  readonly apart: boolean;
  readonly codec: Codec<Acc>;
  readonly ttl: Ttl | undefined;
  readonly aggregate: Aggregate<In, Acc, Out>;
}

export type StateDescriptor =
  | ValueDescriptor<unknown>
  | ListDescriptor<unknown>
  | MapDescriptor<unknown, unknown>
  | ReducingDescriptor<unknown>
  | AggregatingDescriptor<unknown, unknown, unknown>;

/** The states of an operator by name; names are what a restore maps by. */
export type StateShape = Readonly<Record<string, StateDescriptor>>;

function ttlOf(options: StateOptions | undefined): Ttl | undefined {
  const ttl = normaliseTtl(options?.ttl);
  if (ttl !== undefined && !(ttl.durationMs > 0)) {
    throw new MillraceError('bad-argument', `ttl.durationMs must be above 0, got ${ttl.durationMs}`);
  }
  return ttl;
}

/** One value per key. */
export function value<T>(codec: Codec<T>, options?: SingleOptions): ValueDescriptor<T> {
  return { kind: 'value', codec, apart: options?.apart === true, ttl: ttlOf(options) };
}

/** A list per key, stored, read and ended (TTL) as a whole: for long ones use a {@link map}. */
export function list<T>(codec: Codec<T>, options?: StateOptions): ListDescriptor<T> {
  return { kind: 'list', codec, ttl: ttlOf(options) };
}

/** A map per key; its entries are stored one by one, in the order of the encoded map keys. */
export function map<K, V>(keyCodec: Codec<K>, codec: Codec<V>, options?: StateOptions): MapDescriptor<K, V> {
  return { kind: 'map', keyCodec, codec, ttl: ttlOf(options) };
}

/** One value per key, into which added ones are folded. */
export function reducing<T>(
  codec: Codec<T>,
  reduce: (left: T, right: T) => T,
  options?: SingleOptions,
): ReducingDescriptor<T> {
  return { kind: 'reducing', codec, apart: options?.apart === true, reduce, ttl: ttlOf(options) };
}

/** One accumulator per key; `codec` is that of the accumulator. */
export function aggregating<In, Acc, Out>(
  aggregate: Aggregate<In, Acc, Out>,
  codec: Codec<Acc>,
  options?: SingleOptions,
): AggregatingDescriptor<In, Acc, Out> {
  return { kind: 'aggregating', codec, apart: options?.apart === true, aggregate, ttl: ttlOf(options) };
}
