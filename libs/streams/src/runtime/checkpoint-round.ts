import { MillraceError } from '@millrace/kernel';
import type { Barrier, OperatorSnapshot, SlotSnapshot } from './slot.ts';

/** What one task contributes to a round. */
export interface TaskPart {
  readonly operators: readonly OperatorSnapshot[];
  readonly ended: boolean;
  readonly alignMs: number;
  readonly drainMs: number;
  readonly flushMs: number;
  readonly inFlight: number;
  readonly overtakenBytes: number;
}

/** One checkpoint round in one slot: collects the parts of the tasks. */
export class CheckpointRound {
  readonly barrier: Barrier;
  readonly done: Promise<SlotSnapshot>;
  readonly #subtask: number;
  readonly #tasks: number;
  readonly #parts: TaskPart[] = [];
  readonly #settle = Promise.withResolvers<SlotSnapshot>();
  #state: 'running' | 'done' | 'aborted' = 'running';

  constructor(barrier: Barrier, subtask: number, tasks: number) {
    this.barrier = barrier;
    this.#subtask = subtask;
    this.#tasks = tasks;
    this.done = this.#settle.promise;
    // A barrier may come through a channel before anyone asks for the round's result.
    this.done.catch(() => undefined);
  }

  get aborted(): boolean {
    return this.#state === 'aborted';
  }

  get running(): boolean {
    return this.#state === 'running';
  }

  add(part: TaskPart): void {
    this.#parts.push(part);
    if (this.#state !== 'running' || this.#parts.length < this.#tasks) return;
    this.#state = 'done';
    this.#settle.resolve(this.#snapshot());
  }

  abort(reason: unknown): void {
    if (this.#state !== 'running') return;
    this.#state = 'aborted';
    this.#settle.reject(MillraceError.from(reason));
  }

  #snapshot(): SlotSnapshot {
    const parts = this.#parts;
    return {
      checkpoint: this.barrier.checkpoint,
      subtask: this.#subtask,
      operators: parts.flatMap((part) => part.operators),
      ended: parts.every((part) => part.ended),
      alignMs: Math.max(...parts.map((part) => part.alignMs)),
      drainMs: Math.max(...parts.map((part) => part.drainMs)),
      flushMs: Math.max(...parts.map((part) => part.flushMs)),
      inFlightAtBarrier: parts.reduce((sum, part) => sum + part.inFlight, 0),
      overtakenBytes: parts.reduce((sum, part) => sum + part.overtakenBytes, 0),
    };
  }
}
