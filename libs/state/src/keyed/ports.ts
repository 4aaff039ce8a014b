import type { Clock, MaybePromise, MillraceError } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import type { Codec } from '../codec.ts';
import type { StateShape } from '../handles/descriptors.ts';
import type { StateFacade } from '../handles/handles.ts';
import type { KeyValue } from '../keys/key-value.ts';
import type { SnapshotHandle, StateTable } from '../store.ts';
import type { WorkingSet } from './working-set.ts';

/**
 * The life of a record as its state accesses see it, given by the operator host. An access of a scope that is not
 * open is refused. `enter` and `leave` bracket each access that could not be answered at once: a host that
 * finds more entries than leaves when the handler settles has caught an access that was not awaited.
 */
export interface AccessScope {
  readonly open: boolean;
  enter(): void;
  leave(): void;
}

/** Gathers the requests of one tick from many records into one call. The batcher of the execution controller fits. */
export interface RequestBatcher<Request, Response> {
  submit(request: Request): Promise<Response>;
}

/** Makes a batcher over `execute`, which answers requests in their order. */
export type BatcherFactory = <Request, Response>(
  execute: (requests: readonly Request[]) => MaybePromise<readonly Response[]>,
) => RequestBatcher<Request, Response>;

/** The state of one key in one namespace while a record works on it. Opaque to the host but for its key. */
export interface StateEntry {
  readonly key: unknown;
  readonly namespace: KeyValue | undefined;
  readonly keyGroup: number;
}

export interface DueTimer {
  readonly timeMs: number;
  readonly key: unknown;
  readonly namespace: KeyValue | undefined;
}

/** Timers of one time domain: at most one for each (time, key, namespace), in order of time, part of every snapshot. */
export interface TimerQueue {
  /** True when the timer is now the earliest known one. */
  register(entry: StateEntry, timeMs: number): boolean;
  delete(entry: StateEntry, timeMs: number): void;
  /** Takes the earliest timers of at most `timeMs`, in order, at most `timersMax` of them; none left: empty. */
  popDue(timeMs: number, timersMax: number): MaybePromise<readonly DueTimer[]>;
  /** Time of the earliest timer, or, after a restore and before it is due, an earlier one; `Infinity` when there is none. */
  nextMs(): MaybePromise<number>;
}

export interface KeyedStateOptions<S extends StateShape> {
  readonly table: StateTable;
  /** True when the table was opened from handles: its catalog and timers are then loaded and checked. */
  readonly restored: boolean;
  /** Those handles: with what they tell, nothing of the table is read at the restore. Default: it is. */
  readonly handles?: readonly SnapshotHandle[] | undefined;
  readonly shape: S;
  /** Codec of the operator's keys; the canonical `keyCodec` unless the operator's partitioning uses another. */
  readonly keyCodec?: Codec<never> | undefined;
  /** Shared by all operators of the slot. */
  readonly workingSet: WorkingSet;
  readonly clock: Clock;
  /** Default: one batch per microtask. */
  readonly batcher?: BatcherFactory | undefined;
  /** Changes not yet written (values, items of maps) at which all are. Default 8192. */
  readonly changesMax?: number | undefined;
  /** Timers held in memory for each key group and time domain; more wait in the table. Default 512. */
  readonly timersHeldMax?: number | undefined;
  /** Told of the first failure to save or load, which a handler may catch: the operator has to end with it. */
  readonly onFailure?: ((error: MillraceError) => void) | undefined;
}

/**
 * The keyed state of one subtask of one operator (see `index.ts` for the order of calls). The first failure to save or
 * load stays: nothing is known of what was applied, so every later call of the host throws or rejects with it, and no
 * snapshot is taken, whatever the handler that met it makes of it.
 */
export interface KeyedState<S extends StateShape> {
  readonly eventTimers: TimerQueue;
  readonly processingTimers: TimerQueue;
  /** Backpressure: a promise when the working set is full or writes lag behind; await it before the next record. */
  room(): Promise<void> | undefined;
  /** A promise while something is under way that a handler left behind; await it, drained, before {@link snapshot}. */
  settled(): MaybePromise<void>;
  /** The entry of a key, pinned until {@link leave}. Each `enter` needs its `leave`. */
  enter(key: unknown, namespace?: KeyValue): StateEntry;
  leave(entry: StateEntry): void;
  /** `ctx.state` of one record: handles bound to the entry and counted in the scope. */
  facade(entry: StateEntry, scope: AccessScope): StateFacade<S>;
  /** Writes every dirty value and timer to the table; a promise is backpressure. */
  flush(): MaybePromise<void>;
  /** Flushes, then snapshots the table: the part before the promise is synchronous. Call it drained. */
  snapshot(checkpoint: number, parent?: TraceContext): Promise<SnapshotHandle>;
  /** Forgets unflushed changes and closes the table. Idempotent. */
  close(): Promise<void>;
}
