import type { Codec, MapDescriptor, StateShape } from '@millrace/state';
import type { KeyedOptions } from './execution.ts';
import type { KeyedContext, OperatorOptions } from './process.ts';
import type { SideTag } from './side-tag.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- maps of any keys and values; their types come back by inference
type AnyMap = MapDescriptor<any, any>;

/** The maps that every subtask holds alike, declared with `map(keyCodec, codec)`. Held in memory: keep them small. */
export type BroadcastShape = Readonly<Record<string, AnyMap>>;

/** What handlers of records see of a broadcast map. Everything is at hand: nothing is awaited. */
export interface BroadcastMap<K, V> extends Iterable<readonly [K, V]> {
  readonly size: number;
  get(key: K): V | undefined;
  has(key: K): boolean;
}

/** What `onBroadcast` sees of it. */
export interface WritableBroadcastMap<K, V> extends BroadcastMap<K, V> {
  set(key: K, value: V): void;
  delete(key: K): void;
  clear(): void;
}

export type BroadcastMaps<B extends BroadcastShape> = {
  readonly [Name in keyof B]: B[Name] extends MapDescriptor<infer K, infer V> ? BroadcastMap<K, V> : never;
};
export type WritableBroadcastMaps<B extends BroadcastShape> = {
  readonly [Name in keyof B]: B[Name] extends MapDescriptor<infer K, infer V> ? WritableBroadcastMap<K, V> : never;
};

/** What a handler without a key may do beside returning its results. */
export interface SideContext {
  /** Sends to a side output. */
  side<X>(tag: SideTag<X>, value: X): void;
}

/** What a handler without a key works with. */
export interface PlainContext<U> extends SideContext {
  /** Event time of the record. */
  readonly timestampMs: number;
  /** Sends a result on; its timestamp is that of the record unless given. */
  emit(value: U, timestampMs?: number): void;
}

interface BroadcastInput<B, R, U> {
  /** The maps, by name. */
  readonly broadcast: B;
  /** Type and format of what is emitted; without it nothing can be. */
  readonly output?: Codec<U>;
  /**
   * Runs in every subtask for every broadcast record, between two records of the other input. It has to come to the same
   * maps everywhere: use nothing but its arguments, and let the order of records from different sources not matter.
   */
  onBroadcast(record: R, maps: B extends BroadcastShape ? WritableBroadcastMaps<B> : never, ctx: PlainContext<U>): void;
}

/** A stream without key that sees what is broadcast. */
export interface BroadcastSpec<T, R, B extends BroadcastShape, U> extends OperatorOptions, BroadcastInput<B, R, U> {
  onRecord(record: T, maps: BroadcastMaps<B>, ctx: PlainContext<U>): void;
}

/** A keyed stream that sees what is broadcast. A handler sees one state of the maps from its start to its end. */
export interface KeyedBroadcastSpec<K, T, R, B extends BroadcastShape, S extends StateShape, U>
  extends KeyedOptions,
    BroadcastInput<B, R, U> {
  readonly state?: S;
  onRecord(record: T, maps: BroadcastMaps<B>, ctx: KeyedContext<K, S, U>): void | Promise<void>;
  onTimer?(timeMs: number, maps: BroadcastMaps<B>, ctx: KeyedContext<K, S, U>): void | Promise<void>;
  onProcessingTimer?(timeMs: number, maps: BroadcastMaps<B>, ctx: KeyedContext<K, S, U>): void | Promise<void>;
}
