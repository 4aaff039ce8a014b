import type { Barrier } from './slot.ts';

/** One channel as its writer sees it. Calls never wait: a full channel raises its task's `blockers`. */
export interface OutputChannel {
  record(value: unknown, timestampMs: number): void;
  watermark(watermarkMs: number): void;
  status(idle: boolean): void;
  barrier(barrier: Barrier): void;
  end(): void;
  /** The writer's task has nothing to do: what is packed may leave. */
  flushIdle(nowMs: number): void;
}

/** The writing task, as its outputs see it: it takes no input while `blockers` is above zero. */
export interface Producer {
  blockers: number;
  /** Called when `blockers` has fallen. */
  wake(): void;
}
