import type { KeyGroupRange, MaybePromise } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import type { RetainedSnapshots } from './backend.ts';
import type { PackedKeys, PackedValues } from './packed.ts';
import type { WriteBatch } from './write-batch.ts';

/** Which table, whose, and which part of it. */
export interface TableSpec {
  readonly job: string;
  /** The operator's uid: a state table belongs to one operator and holds all its states. */
  readonly operator: string;
  readonly subtask: number;
  readonly keyGroups: KeyGroupRange;
  readonly maxParallelism: number;
  /** The attempt that opens it; a store refuses generations older than the newest it has seen. */
  readonly generation: number;
}

/** A table at one checkpoint. Small plain JSON; `data` is opaque to all but the store that made it. */
export interface SnapshotHandle {
  readonly store: string;
  readonly operator: string;
  readonly keyGroups: KeyGroupRange;
  readonly data: Readonly<Record<string, unknown>>;
  /**
   * Paths of the holder objects (unified file system) that keep this snapshot's files, for the job's retention; empty
   * for stores that keep their snapshots themselves.
   */
  readonly holders: readonly string[];
  /** Bytes that this snapshot added to the store, and bytes that it only refers to. */
  readonly bytesPut: number;
  readonly bytesLinked: number;
  /** Added by the keyed state over the table, of which no store knows. */
  readonly keyed?: KeyedNotes;
}

/** What a keyed state has to know of its table at a restore, so that it need not read it there. */
export interface KeyedNotes {
  /** Ids and formats of its states. */
  readonly catalog: unknown;
  readonly eventTimers: TimerNotes;
  readonly processingTimers: TimerNotes;
}

/**
 * Key groups that have timers, each with a time before which none of them is due; or, of many groups, one such time for
 * all. Epoch milliseconds.
 */
export type TimerNotes = ReadonlyArray<readonly [keyGroup: number, timeMs: number]> | number;

/** `[start, end)` in key order; without `end`, to the end of the table. */
export interface ScanRange {
  readonly start: Uint8Array;
  readonly end?: Uint8Array | undefined;
  readonly pageEntriesMax?: number;
}

export interface ScanPage {
  readonly keys: PackedKeys;
  readonly values: PackedValues;
}

export interface TableStats {
  readonly entriesEstimate: number;
  readonly bytesInMemory: number;
  readonly bytesStored: number;
}

/** What `peek` knows without any input or output. */
export type Peek = 'found' | 'absent' | 'unknown';

/** Where `peek` leaves the value it found; reused by the caller, valid until the next call on the table. */
export interface ValueView {
  bytes: Uint8Array;
  start: number;
  end: number;
}

/**
 * One table of one subtask. Calls are ordered: a read sees every write issued before it, and a snapshot holds exactly
 * the writes issued before it. Expired entries are never returned. After the first failure of kind `fenced` every
 * call rejects with it.
 */
export interface StateTable {
  readonly spec: TableSpec;
  /** Answers from memory or says `unknown`; never waits. Fills `into` when found. */
  peek(keyBytes: Uint8Array, start: number, end: number, into: ValueView): Peek;
  /** Values in the order of the keys, absent ones marked. */
  multiGet(keys: PackedKeys, parent?: TraceContext): MaybePromise<PackedValues>;
  /** Applied in order. The batch may be reused as soon as the call returns; a promise is backpressure. */
  write(batch: WriteBatch): MaybePromise<void>;
  /** Lazy pages, a consistent view as of the call. */
  scan(range: ScanRange, parent?: TraceContext): AsyncIterable<ScanPage>;
  /**
   * The table as of this call. The part before the returned promise is synchronous and short; the promise resolves
   * when the snapshot is durable. Writes go on meanwhile.
   */
  snapshot(checkpoint: number, parent?: TraceContext): Promise<SnapshotHandle>;
  stats(): TableStats;
  /** Releases memory and files; unsaved writes are lost. Idempotent. */
  close(): Promise<void>;
}

/** The port that a state backend implements (DESIGN §6). `@millrace/state/testing` has its conformance suite. */
export interface StateStore {
  /** Short name in settings and handles: `memory`, `lsm`, `kv`, … */
  readonly name: string;
  /** Only stores whose handles have no holders, and whose snapshots cost something while they exist. */
  readonly retained?: RetainedSnapshots;
  /**
   * Opens a table, empty or from handles. Each handle is clipped to `spec.keyGroups`; together they must cover it.
   * Moves no state bytes where the store can link.
   */
  openTable(spec: TableSpec, restore: readonly SnapshotHandle[], parent?: TraceContext): Promise<StateTable>;
  close(): Promise<void>;
}
