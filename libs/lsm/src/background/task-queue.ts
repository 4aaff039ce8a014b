import { Semaphore } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import type { FileRef, FileStore } from '@millrace/ufs';
import type { TableInfo } from '../sst/table-info.ts';
import { buildFlush, buildMerge } from './build-tables.ts';
import type { BackgroundExecutor, FlushTask, MergeTask } from './executor.ts';

/** Merges under way at once; each holds read-ahead of its inputs. */
const mergesMax = 2;

/**
 * Runs tasks on the thread that it lives on. A flush starts at once and works until it waits for its file; a merge gives
 * way after every millisecond or so. Neither can starve the other: a flush that waits for a slow store leaves the thread
 * to the merges, whose progress writers may be waiting for.
 */
export class TaskQueue implements BackgroundExecutor {
  readonly #files: FileStore;
  readonly #merges = new Semaphore(mergesMax);

  constructor(files: FileStore) {
    this.#files = files;
  }

  flush(task: FlushTask, parent?: TraceContext): Promise<readonly TableInfo[]> {
    return buildFlush(task, this.#files, parent);
  }

  merge(task: MergeTask, parent?: TraceContext): Promise<readonly TableInfo[]> {
    return this.#merges.run(() => buildMerge(task, this.#files, { parent, yieldTurn }));
  }

  discard(files: readonly FileRef[]): void {
    this.#files.discard(files);
  }

  /** Nothing to give back: the files belong to who opened them. */
  async close(): Promise<void> {}
}

function yieldTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
