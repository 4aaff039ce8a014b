import { MillraceError } from '@millrace/kernel';
import type { AttemptPlan, JobDescription, Json, Runner, UnaryHandlers } from '@millrace/proto';
import type { AttemptHandle, AttemptHost } from '../attempt-host.ts';

/** What the scripted slots of one attempt have seen. */
export interface ScriptedAttempt {
  readonly plan: AttemptPlan;
  readonly barriers: number[];
  /** Those of the barriers with which the attempt is to stop. */
  readonly stops: number[];
  readonly completed: number[];
  readonly aborted: number[];
  inputsEnded: boolean;
  /** What its slots say that they have read; undefined: they are not open yet. */
  recordsIn: number | undefined;
  cancelledBecause: string | undefined;
  /** Ends the sources. */
  endInputs(): void;
  /** Makes a slot fail. */
  fail(error: Error): void;
  /** Called by each barrier; a rejection refuses it. */
  onBarrier: ((checkpoint: number) => void | Promise<void>) | undefined;
}

/** Slots without records: they answer barriers and end as told. Stands in for the data plane. */
export class ScriptedHost implements AttemptHost {
  readonly attempts: ScriptedAttempt[] = [];
  readonly #runnerId: string;
  readonly #onStart: (attempt: ScriptedAttempt) => void;
  readonly #finish = new Map<ScriptedAttempt, () => void>();

  constructor(runnerId: string, onStart: (attempt: ScriptedAttempt) => void = () => undefined) {
    this.#runnerId = runnerId;
    this.#onStart = onStart;
  }

  async describe(job: string, options: { readonly [key: string]: Json }): Promise<JobDescription> {
    if (options.bad !== undefined) {
      throw new MillraceError('job-options', 'options.bad: is not an option', { details: { path: 'options.bad' } });
    }
    const operators = [
      { uid: 'source', kind: 'generator', chain: 0, stateful: false },
      { uid: 'count', kind: 'process', chain: 1, stateful: true },
    ];
    return { job, codeHash: 'code-1', operators, edges: [{ from: 'source', to: 'count', partitioning: 'hash' }] };
  }

  prepareSlots(): void {
    // Scripted slots have no threads.
  }

  start(plan: AttemptPlan, runnerId: string): AttemptHandle {
    const { promise: done, resolve: finish, reject: fail } = Promise.withResolvers<void>();
    const { promise: inputsEnded, resolve: endInputs } = Promise.withResolvers<void>();
    const attempt: ScriptedAttempt = {
      plan,
      barriers: [],
      stops: [],
      completed: [],
      aborted: [],
      inputsEnded: false,
      recordsIn: 1,
      cancelledBecause: undefined,
      endInputs: () => {
        attempt.inputsEnded = true;
        endInputs();
      },
      fail: (error) => this.#leave(attempt, () => fail(error)),
      onBarrier: undefined,
    };
    done.catch(() => undefined);
    this.#finish.set(attempt, finish);
    this.attempts.push(attempt);
    this.#onStart(attempt);
    if (runnerId !== this.#runnerId) attempt.fail(new Error(`started for ${runnerId}`));
    return {
      done,
      inputsEnded,
      get stopped() {
        return attempt.stops.length > 0;
      },
      progress: () => ({ recordsIn: 0, recordsOut: 0 }),
      cancel: async (reason) => {
        attempt.cancelledBecause ??= reason.message;
        this.#leave(attempt, () => fail(reason));
      },
    };
  }

  get latest(): ScriptedAttempt {
    return this.attempts.at(-1) as ScriptedAttempt;
  }

  #leave(attempt: ScriptedAttempt, end: () => void): void {
    if (!this.#finish.delete(attempt)) return;
    end();
  }

  #hosted(target: { job: string; generation: bigint; runnerId: string } | undefined): ScriptedAttempt {
    const found = this.attempts.find(
      (attempt) =>
        this.#finish.has(attempt) &&
        attempt.plan.id === target?.job &&
        BigInt(attempt.plan.generation) === target.generation &&
        this.#runnerId === target.runnerId,
    );
    if (found === undefined) throw new MillraceError('attempt-unknown', 'no such attempt here');
    return found;
  }

  #subtasks({ plan }: ScriptedAttempt): readonly number[] {
    return plan.slots.flatMap((slot, subtask) => (slot.runnerId === this.#runnerId ? [subtask] : []));
  }

  /** The gRPC side. */
  handlers(): UnaryHandlers<typeof Runner> {
    return {
      injectBarrier: async ({ target, checkpoint, stop }) => {
        const attempt = this.#hosted(target);
        await attempt.onBarrier?.(Number(checkpoint));
        if (!attempt.barriers.includes(Number(checkpoint))) attempt.barriers.push(Number(checkpoint));
        if (stop) attempt.stops.push(Number(checkpoint));
        return {};
      },
      endInputs: async ({ target }) => {
        this.#hosted(target).endInputs();
        return {};
      },
      awaitDrain: async ({ target, checkpoint }) => {
        const attempt = this.#hosted(target);
        if (!attempt.barriers.includes(Number(checkpoint)))
          throw new MillraceError('rpc-unavailable', 'no such barrier');
        const slots = this.#subtasks(attempt);
        return { slotSnapshots: slots.map((subtask) => snapshot(Number(checkpoint), subtask, attempt.inputsEnded)) };
      },
      completeCheckpoint: async ({ target, checkpoint, last }) => {
        const attempt = this.#hosted(target);
        attempt.completed.push(Number(checkpoint));
        if (last) this.#leave(attempt, this.#finish.get(attempt) ?? (() => undefined));
        return {};
      },
      abortCheckpoint: async ({ target, checkpoint }) => {
        this.#hosted(target).aborted.push(Number(checkpoint));
        return {};
      },
      status: async ({ target }) => {
        const attempt = this.#hosted(target);
        const { recordsIn } = attempt;
        if (recordsIn === undefined) return { slotStats: [] };
        return { slotStats: this.#subtasks(attempt).map((subtask) => JSON.stringify({ subtask, recordsIn })) };
      },
    };
  }
}

function snapshot(checkpoint: number, subtask: number, ended: boolean): string {
  const operators = [{ operator: 'source', subtask, list: [{ at: checkpoint }] }];
  return JSON.stringify({
    checkpoint,
    subtask,
    operators,
    ended,
    alignMs: 1,
    drainMs: 1,
    flushMs: 1,
    inFlightAtBarrier: 0,
  });
}
