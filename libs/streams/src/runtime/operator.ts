import type { KeyGroupRange } from '@millrace/kernel';
import type { SnapshotHandle } from '@millrace/state';
import type { TraceContext } from '@millrace/telemetry';
import type { SlotContext } from './slot.ts';

/** Where an operator's results go. Calls never wait; the task looks at the channels' fill between records. */
export interface Output {
  /** `side` names a side output; undefined is the main one. */
  emit(value: unknown, timestampMs: number, side?: string): void;
  /** Passes a watermark on. Never smaller than the one before; an equal one is dropped. */
  watermark(watermarkMs: number): void;
  /** Passes the idle / active status on, in its place among watermarks. */
  status(idle: boolean): void;
}

/** What one subtask of an operator is opened with. */
export interface OperatorContext {
  readonly slot: SlotContext;
  readonly uid: string;
  readonly subtask: number;
  readonly keyGroups: KeyGroupRange;
  readonly output: Output;
  /** Handles of this operator's state table to restore from, of all subtasks whose range overlaps this one's. */
  readonly restoredTables: readonly SnapshotHandle[];
  /** This subtask's share of the operator's list state; undefined on an empty start. */
  readonly restoredList: readonly unknown[] | undefined;
  /**
   * The watermark that the tasks behind this one have reached in this slot, over all subtasks that they get records from; absent
   * where there are none. For sources that must not run far ahead of the others.
   */
  downstreamWatermarkMs?(): number;
  /** Ends the attempt with this failure: for faults that arise outside a call of the task. */
  fail(error: unknown): void;
}

/** An operator's part of a checkpoint: taken synchronously, durable when the promise resolves. */
export interface OperatorPart {
  readonly table?: SnapshotHandle;
  readonly list?: readonly unknown[];
  /** How far event time had come, for an operator that judges lateness; absent before the first watermark. */
  readonly watermarkMs?: StoredWatermark;
}

/** Epoch milliseconds; `end` after the last record. */
export type StoredWatermark = number | 'end';

/**
 * One subtask of one operator, driven by its task. A returned promise means: do not call again before it resolves;
 * nothing is returned when the operator can take the next call at once. The task calls from one place only, in order.
 * `complete`, `abort`, `inFlight` and `buffered` are outside that order: they may come while a promise is open.
 */
export interface Operator {
  open(context: OperatorContext): void | Promise<void>;
  record(value: unknown, timestampMs: number, input: number): void | Promise<void>;
  /** The smallest watermark of all inputs. The operator passes it on itself, when its timers and records allow. */
  watermark(watermarkMs: number): void | Promise<void>;
  status(idle: boolean): void | Promise<void>;
  /** Resolves when nothing is in flight, buffered or derived, and all passed watermarks have been passed on. */
  drain(): void | Promise<void>;
  /** Called drained. The operator's state is exactly that of the records before the barrier. */
  snapshot(checkpoint: number, parent?: TraceContext): Promise<OperatorPart>;
  /** The checkpoint is registered; idempotent. */
  complete(checkpoint: number): void | Promise<void>;
  abort(checkpoint: number): void;
  inFlight(): number;
  buffered(): number;
  close(): Promise<void>;
}

/** What `poll` says of a source: there is more at once, nothing for now (wait for the promise), or the end. */
export type Poll = 'more' | 'end' | Promise<void>;

/** A source: the head of a chain that is asked for records instead of being given them. */
export interface SourceOperator extends Operator {
  /**
   * Emits at most `recordsMax` records and what watermarks follow from them. While a returned promise is open the
   * source emits nothing, and may be drained and snapshotted.
   */
  poll(recordsMax: number): Poll;
}
