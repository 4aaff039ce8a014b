import { Worker } from 'node:worker_threads';
import { type Clock, errorFromJson, MillraceError } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import type { FileRef } from '@millrace/ufs';
import type { TableInfo } from '../sst/table-info.ts';
import type { BackgroundExecutor, FlushTask, MergeTask } from './executor.ts';
import type { FilesModule, WorkerRequest, WorkerResponse } from './worker-protocol.ts';

export interface WorkerExecutorOptions {
  readonly files: FilesModule;
  readonly clock: Clock;
  /** How long `close` waits for work under way before it ends the thread. */
  readonly closeTimeoutMs: number;
}

/**
 * What is in the thread's heap is small and dies young, and a young generation of Node's default size would hold a hundred
 * megabytes of garbage. The old generation stays unlimited: V8 counts buffers outside the heap against a limit, and a
 * low one would make it collect after every few of them.
 */
const heapLimits = { maxYoungGenerationSizeMb: 24 };

interface PendingTask {
  readonly resolve: (tables: readonly TableInfo[]) => void;
  readonly reject: (error: MillraceError) => void;
}

/**
 * Builds tables on a thread of its own, one for all tables of a slot. A frozen memtable crosses as shared memory. When
 * the thread ends unexpectedly, everything under way and everything later rejects with `lsm-worker-failed`: the
 * attempt is over, and what the thread had written is swept.
 */
export class WorkerExecutor implements BackgroundExecutor {
  readonly #options: WorkerExecutorOptions;
  readonly #worker: Worker;
  readonly #exited: Promise<void>;
  readonly #pending = new Map<number, PendingTask>();
  #nextId = 0;
  #failure: MillraceError | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: WorkerExecutorOptions) {
    this.#options = options;
    this.#worker = new Worker(new URL('./worker-main.ts', import.meta.url), {
      workerData: options.files,
      name: 'millrace-lsm',
      resourceLimits: heapLimits,
    });
    this.#worker.on('message', (response: WorkerResponse) => this.#settle(response));
    this.#worker.on('error', (error: unknown) => this.#fail(error));
    this.#exited = new Promise((resolve) => {
      this.#worker.once('exit', (code) => {
        this.#fail(new Error(`it ended with code ${code}`));
        resolve();
      });
    });
  }

  flush(task: FlushTask, parent?: TraceContext): Promise<readonly TableInfo[]> {
    return this.#run((id) => ({ kind: 'flush', id, task, parent }));
  }

  merge(task: MergeTask, parent?: TraceContext): Promise<readonly TableInfo[]> {
    return this.#run((id) => ({ kind: 'merge', id, task, parent }));
  }

  discard(files: readonly FileRef[]): void {
    if (this.#failure === undefined) this.#post({ kind: 'discard', files });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#failure === undefined) this.#post({ kind: 'close' });
    const timer = this.#options.clock.schedule(this.#options.closeTimeoutMs, () => void this.#worker.terminate());
    await this.#exited;
    timer.cancel();
  }

  #run(request: (id: number) => WorkerRequest): Promise<readonly TableInfo[]> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#post(request(id));
    });
  }

  #post(request: WorkerRequest): void {
    this.#worker.postMessage(request);
  }

  #settle(response: WorkerResponse): void {
    const task = this.#pending.get(response.id);
    this.#pending.delete(response.id);
    if ('tables' in response) task?.resolve(response.tables);
    else task?.reject(errorFromJson(response.error));
  }

  #fail(cause: unknown): void {
    this.#failure ??= this.#closing === undefined ? workerFailed(cause) : closed();
    for (const task of this.#pending.values()) task.reject(this.#failure);
    this.#pending.clear();
  }
}

function workerFailed(cause: unknown): MillraceError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new MillraceError('lsm-worker-failed', `the thread that builds tables ended: ${reason}`, { cause });
}

function closed(): MillraceError {
  return new MillraceError('lsm-closed', 'the thread that builds tables was closed');
}
