import type { FileStore } from '@millrace/ufs';
import type { BackgroundExecutor } from './executor.ts';
import { TaskQueue } from './task-queue.ts';

/** Works on the caller's own thread; for tests and tools. */
export function inlineExecutor(files: FileStore): BackgroundExecutor {
  return new TaskQueue(files);
}
