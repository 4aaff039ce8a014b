import type { Codec, KeyValue, StateFacade, StateShape } from '@millrace/state';
import type { OperatorContext } from '../runtime/operator.ts';
import type { KeyedOptions } from './execution.ts';
import type { SideTag } from './side-tag.ts';

/** Timers of the key at hand in one time domain. One for each (key, time): registering again changes nothing. */
export interface Timers {
  /** Calls the handler once, when time has reached `timeMs` (whole milliseconds since the epoch), never before. */
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
  /** Timers of event time: `onTimer` is called when the watermark has reached them. */
  readonly timers: Timers;
  /** Timers of processing time: `onProcessingTimer` is called when the machine's clock has reached them. */
  readonly processingTimers: Timers;
  /** Processing time: the machine's clock, which within an attempt never goes back. */
  readonly processingMs: number;
  /** Sends a result on; its timestamp is that of the record or timer unless given. */
  emit(value: U, timestampMs?: number): void;
  /** Sends to a side output. */
  side<X>(tag: SideTag<X>, value: X): void;
  /**
   * Work of this key that follows from this record or timer, with a context of its own: it runs when this handler has
   * ended, before the key's next record, and may exceed the in-flight limit. The watermark waits for it, and a
   * checkpoint does. Do not wait for it in this handler: it would wait for itself.
   */
  spawn(work: SpawnedWork<K, S, U>): void;
}

export type SpawnedWork<K, S extends StateShape, U> = (ctx: KeyedContext<K, S, U>) => void | Promise<void>;

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
  /** The watermark has reached a timer of `ctx.timers`. */
  onTimer?(timeMs: number, ctx: KeyedContext<K, S, U>): void | Promise<void>;
  /**
   * The clock has reached a timer of `ctx.processingTimers`. Timers that are not due when the input ends do not fire;
   * after a restore those that fell due meanwhile fire at once.
   */
  onProcessingTimer?(timeMs: number, ctx: KeyedContext<K, S, U>): void | Promise<void>;
}

/** As {@link ProcessSpec}, over two streams with one key and one set of states. */
export interface ConnectSpec<K, L, R, S extends StateShape, U> extends KeyedOptions {
  readonly state?: S;
  readonly output?: Codec<U>;
  onLeft(record: L, ctx: KeyedContext<K, S, U>): void | Promise<void>;
  onRight(record: R, ctx: KeyedContext<K, S, U>): void | Promise<void>;
  /** The watermark has reached a timer of `ctx.timers`. */
  onTimer?(timeMs: number, ctx: KeyedContext<K, S, U>): void | Promise<void>;
  /**
   * The clock has reached a timer of `ctx.processingTimers`. Timers that are not due when the input ends do not fire;
   * after a restore those that fell due meanwhile fire at once.
   */
  onProcessingTimer?(timeMs: number, ctx: KeyedContext<K, S, U>): void | Promise<void>;
}

/** State and timers of a key in one namespace. */
export interface LogicPane {
  /** A window, for instance. */
  readonly namespace: KeyValue | undefined;
  readonly state: StateFacade<StateShape>;
  readonly timers: Timers;
  readonly processingTimers: Timers;
}

/** What the built-in operators see beyond {@link KeyedContext}; it is the pane of its own namespace. */
export interface LogicContext extends KeyedContext<unknown, StateShape, unknown>, LogicPane {
  readonly state: StateFacade<StateShape>;
  readonly timers: Timers;
  readonly processingTimers: Timers;
  /** The pane of this key in another namespace, or in none, for as long as the handler runs. */
  in(namespace: KeyValue | undefined): LogicPane;
  /** The record is too late: to the side output `late`, or dropped and counted. */
  late(): void;
}

/** What a keyed operator does, with its types erased: the operator host runs it. */
export interface KeyedLogic {
  readonly shape: StateShape;
  /** Once, before the first record: for logic that is made for each subtask. */
  open?(context: OperatorContext): void;
  close?(): void;
  /** Keeps the states apart by (key, namespace); undefined: by key. */
  namespaceOf?(timestampMs: number): KeyValue;
  /** True for a record that comes too late; it then goes to `late` or is dropped. */
  isLate?(timestampMs: number, watermarkMs: number): boolean;
  readonly late?: string | undefined;
  /** In place of `late`, by input: where two streams of different types come in. */
  readonly lateByInput?: readonly (string | undefined)[];
  onRecord(record: unknown, input: number, ctx: LogicContext): void | Promise<void>;
  onTimer?(timeMs: number, ctx: LogicContext): void | Promise<void>;
  onProcessingTimer?(timeMs: number, ctx: LogicContext): void | Promise<void>;
  /** Processing timers that are not due fire when the input ends: nothing can follow that they would have to wait for. */
  readonly closesAtEnd?: boolean;
}
