import { Semaphore } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import type { FileRef, FileStore } from '@millrace/ufs';
import type { TableInfo } from '../sst/table-info.ts';
import { buildFlush, buildMerge } from './build-tables.ts';
import type { BackgroundExecutor, FlushTask, MergeTask } from './executor.ts';

/** Merges under way at once; each holds read-ahead of its inputs. */
const mergesMax = 2;

/** Runs tasks on the thread that it lives on: flushes at once, merges in turn and only while no flush is under way. */
export class TaskQueue implements BackgroundExecutor {
  readonly #files: FileStore;
  readonly #merges = new Semaphore(mergesMax);
  readonly #flushes = new Set<Promise<unknown>>();

  constructor(files: FileStore) {
    this.#files = files;
  }

  async flush(task: FlushTask, parent?: TraceContext): Promise<readonly TableInfo[]> {
    const work = buildFlush(task, this.#files, parent);
    this.#flushes.add(work);
    try {
      return await work;
    } finally {
      this.#flushes.delete(work);
    }
  }

  merge(task: MergeTask, parent?: TraceContext): Promise<readonly TableInfo[]> {
    return this.#merges.run(() => buildMerge(task, this.#files, { parent, yieldTurn: () => this.#flushesDone() }));
  }

  discard(files: readonly FileRef[]): void {
    this.#files.discard(files);
  }

  /** Nothing to give back: the files belong to who opened them. */
  async close(): Promise<void> {}

  /** Lets tasks that wait on this thread begin, and the urgent ones end. */
  async #flushesDone(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#flushes.size > 0) await Promise.allSettled(this.#flushes);
  }
}
