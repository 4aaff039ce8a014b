/** Entry of the background thread of a slot. It ends when it is told to, after what it has begun. */
import { parentPort, workerData } from 'node:worker_threads';
import { assert, errorToJson } from '@millrace/kernel';
import type { TableInfo } from '../sst/table-info.ts';
import { TaskQueue } from './task-queue.ts';
import type { FilesModule, OpenBackgroundFiles, WorkerRequest, WorkerResponse } from './worker-protocol.ts';

const port = parentPort;
assert(port !== null, 'the background thread was started as a program');
const { specifier, config } = workerData as FilesModule;
const module = (await import(specifier)) as { readonly openBackgroundFiles: OpenBackgroundFiles };
const opened = await module.openBackgroundFiles(config);
const queue = new TaskQueue(opened.files);
const running = new Set<Promise<void>>();

async function answer(id: number, work: Promise<readonly TableInfo[]>): Promise<void> {
  const response: WorkerResponse = await work.then(
    (tables) => ({ id, tables }),
    (error: unknown) => ({ id, error: errorToJson(error) }),
  );
  port?.postMessage(response);
}

function begin(request: WorkerRequest): void {
  switch (request.kind) {
    case 'discard':
      return queue.discard(request.files);
    case 'close':
      return void finish();
    case 'flush':
      return track(answer(request.id, queue.flush(request.task, request.parent)));
    case 'merge':
      return track(answer(request.id, queue.merge(request.task, request.parent)));
  }
}

function track(work: Promise<void>): void {
  running.add(work);
  void work.finally(() => running.delete(work));
}

async function finish(): Promise<void> {
  await Promise.all(running);
  await opened.close();
  port?.close();
}

port.on('message', begin);
