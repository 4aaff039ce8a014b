import type { Codec, KeyValue, StateFacade, StateShape } from '@millrace/state';
import type { KeyedOptions } from './execution.ts';
import type { SideTag } from './side-tag.ts';

/** Event-time timers of the key at hand. One for each (key, time): registering again changes nothing. */
export interface Timers {
  /** Calls `onTimer` once the watermark has reached `timeMs`. */
  at(timeMs: number): void;
  delete(timeMs: number): void;
}

/** What a handler of a keyed operator works with. It ends with the handler: later use is refused. */
export interface KeyedContext<K, S extends StateShape, U> {
  readonly key: K;
  /** Event time of the record, or of the timer. */
  readonly timestampMs: number;
  /** The newest watermark that had arrived when this record did. */
  readonly watermarkMs: number;
  /** The declared states, of this key. */
  readonly state: StateFacade<S>;
  readonly timers: Timers;
  /** Sends a result on; its timestamp is that of the record or timer unless given. */
  emit(value: U, timestampMs?: number): void;
  /** Sends to a side output. */
  side<X>(tag: SideTag<X>, value: X): void;
}

export interface OperatorOptions {
  /** Names the operator's state. Give one to each stateful operator: a generated name changes with the job's shape. */
  readonly uid?: string;
}

/** A keyed operator. Handlers of one key run one at a time, in order; those of different keys overlap. */
export interface ProcessSpec<K, T, S extends StateShape, U> extends KeyedOptions {
  /** The states that the handlers may use, by name. */
  readonly state?: S;
  /** Type and format of what is emitted; without it nothing can be. */
  readonly output?: Codec<U>;
  onRecord(record: T, ctx: KeyedContext<K, S, U>): void | Promise<void>;
  onTimer?(timeMs: number, ctx: KeyedContext<K, S, U>): void | Promise<void>;
}

/** As {@link ProcessSpec}, over two streams with one key and one set of states. */
export interface ConnectSpec<K, L, R, S extends StateShape, U> extends KeyedOptions {
  readonly state?: S;
  readonly output?: Codec<U>;
  onLeft(record: L, ctx: KeyedContext<K, S, U>): void | Promise<void>;
  onRight(record: R, ctx: KeyedContext<K, S, U>): void | Promise<void>;
  onTimer?(timeMs: number, ctx: KeyedContext<K, S, U>): void | Promise<void>;
}

/** What the built-in operators see beyond {@link KeyedContext}. */
export interface LogicContext extends KeyedContext<unknown, StateShape, unknown> {
  /** The namespace of the state at hand: a window's start. */
  readonly namespace: KeyValue | undefined;
}

/** What a keyed operator does, with its types erased: the operator host runs it. */
export interface KeyedLogic {
  readonly shape: StateShape;
  /** Keeps the states apart by (key, namespace); undefined: by key. */
  namespaceOf?(timestampMs: number): KeyValue;
  /** True for a record that comes too late; it then goes to `late` or is dropped. */
  isLate?(timestampMs: number, watermarkMs: number): boolean;
  readonly late?: string | undefined;
  onRecord(record: unknown, input: number, ctx: LogicContext): void | Promise<void>;
  onTimer?(timeMs: number, ctx: LogicContext): void | Promise<void>;
}
