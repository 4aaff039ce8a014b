import type { MaybePromise } from '@millrace/kernel';
import type { Barrier } from './slot.ts';

/** One channel as its writer sees it. Calls never wait: a full channel raises its task's `blockers`. */
export interface OutputChannel {
  /** The subtask that reads it. */
  readonly toSlot: number;
  record(value: unknown, timestampMs: number): void;
  watermark(watermarkMs: number): void;
  status(idle: boolean): void;
  /** The answer are the elements that the barrier overtook at this end; a promise when that is not known yet. */
  barrier(barrier: Barrier): MaybePromise<Uint8Array>;
  /** What was in flight in the restored checkpoint has passed. */
  replayed(): void;
  end(): void;
  /** The writer's task has nothing to do: what is packed may leave. */
  flushIdle(nowMs: number): void;
}

export const nothingOvertaken = new Uint8Array(0);

/** The writing task, as its outputs see it: it takes no input while `blockers` is above zero. */
export interface Producer {
  blockers: number;
  /** Called when `blockers` has fallen. */
  wake(): void;
}
