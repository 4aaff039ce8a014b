import type { Clock } from '@millrace/kernel';
import type { Codec } from '@millrace/state';
import type { Poll } from '../runtime/operator.ts';

/**
 * A part of a source's input that one subtask reads alone and in order. Plain JSON: splits travel in checkpoints.
 * `order` ranks the splits of a source; a subtask prefers lower ones, so input ordered by time is read in that order.
 */
export interface Split {
  readonly id: string;
  readonly order: number;
  readonly data: unknown;
}

/** A split and the first record in it that has not been emitted. Exact between two calls of `read`. */
export interface SplitPosition {
  readonly split: Split;
  readonly position: number;
}

export interface ReaderContext {
  readonly clock: Clock;
  readonly subtask: number;
  readonly parallelism: number;
  /** Ids of the splits of all subtasks at this start: what is not among them is new to everybody. */
  readonly known: readonly string[];
}

/** Takes a record, and the split that it is from where the reader tells them apart. */
export type EmitRecord<T> = (record: T, split?: Split) => void;

/** Reads the splits of one subtask. */
export interface SourceReader<T> {
  /** Emits at most `recordsMax` records. `end`: every split is done. A promise: nothing at hand until it resolves. */
  read(recordsMax: number, emit: EmitRecord<T>): Poll;
  /**
   * Of a reader that reads its splits side by side, the way that each has a time of its own: those that are open now. Watermarks
   * are then kept for each split, and each record is emitted with its split.
   */
  openSplits?(): readonly Split[];
  /** These splits are too far ahead of the others: it emits nothing of them until it is told otherwise. */
  pause?(ids: ReadonlySet<string>): void;
  /** The splits that are not done yet. */
  positions(): readonly SplitPosition[];
  /** A checkpoint with these positions, taken before, is registered. For those who tell others how far they are; returns at once. */
  commit?(positions: readonly SplitPosition[]): void;
  close(): Promise<void>;
}

/** Where records come from. A source is a description; readers do the work. */
export interface Source<T> {
  /** What the console shows: `parquet`, `generator`, … */
  readonly kind: string;
  /** How the records are written between threads. */
  readonly codec: Codec<T>;
  /** Records per second over all subtasks; undefined: as fast as they are taken. */
  readonly recordsPerSecond?: number | undefined;
  /** Every split, in the same order at each call. Called at an empty start only. */
  splits(): Promise<readonly Split[]>;
  /** A reader of these splits, each from its position. */
  open(splits: readonly SplitPosition[], context: ReaderContext): Promise<SourceReader<T>>;
}
