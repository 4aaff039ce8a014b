import type { TraceContext } from '@millrace/telemetry';
import type { FileRef } from '@millrace/ufs';
import type { KeyRange } from '../manifest/key-range.ts';
import type { MemtableContent } from '../memtable/memtable.ts';
import type { TableInfo, TableOptions } from '../sst/table-info.ts';

/** Writes a frozen memtable as one sorted run. */
export interface FlushTask {
  readonly content: MemtableContent;
  readonly options: TableOptions;
}

/** Merges sorted runs into one. */
export interface MergeTask {
  /** Newest first. */
  readonly runs: ReadonlyArray<readonly MergeInput[]>;
  /** Nothing older lies beneath: tombstones and expired entries are dropped. */
  readonly isBottom: boolean;
  readonly nowMs: number;
  readonly options: TableOptions;
}

export interface MergeInput {
  readonly info: TableInfo;
  readonly clip: KeyRange;
}

/**
 * Builds tables off the caller's thread. Tasks and results are plain data and shared memory, so that they can cross
 * to another thread. A flush starts at once, whatever merges are under way: a checkpoint never waits for a compaction. A rejected task leaves no
 * file behind, unless its thread died; then the sweep of the unified file system removes what it wrote.
 */
export interface BackgroundExecutor {
  flush(task: FlushTask, parent?: TraceContext): Promise<readonly TableInfo[]>;
  merge(task: MergeTask, parent?: TraceContext): Promise<readonly TableInfo[]>;
  /** Removes files that it made. They were never part of a snapshot, or retention would be in charge of them. */
  discard(files: readonly FileRef[]): void;
  /** Ends the work under way with an error of kind `cancelled`. Idempotent. */
  close(): Promise<void>;
}
