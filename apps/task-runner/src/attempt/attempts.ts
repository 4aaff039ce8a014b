import { MillraceError } from '@millrace/kernel';
import type { AttemptPlan, JobDescription, Json } from '@millrace/proto';
import type { MetricSource } from '@millrace/telemetry';
import type { AttemptHandle, AttemptHost } from '../temporal/attempt-host.ts';
import { Attempt, type AttemptDeps } from './attempt.ts';

/** Every attempt on this runner; at most one of a job, the newest. */
export class Attempts implements AttemptHost {
  readonly #deps: AttemptDeps;
  readonly #newest = new Map<string, Attempt>();

  constructor(deps: AttemptDeps) {
    this.#deps = deps;
  }

  describe(job: string, options: { readonly [name: string]: Json }): Promise<JobDescription> {
    return this.#deps.jobs.describe(job, options);
  }

  metrics(): readonly MetricSource[] {
    return [...this.#newest.values()].flatMap((attempt) => attempt.metrics());
  }

  prepareSlots(count: number): void {
    this.#deps.workers.warm(count);
  }

  start(plan: AttemptPlan, runnerId: string): AttemptHandle {
    const older = this.#newest.get(plan.id);
    if (older !== undefined && older.plan.generation >= plan.generation) {
      return refused(fenced(plan, older.plan.generation));
    }
    const before = older?.cancel(fenced(older.plan, plan.generation)) ?? Promise.resolve();
    const attempt = new Attempt(this.#deps, plan, { runnerId, before });
    this.#newest.set(plan.id, attempt);
    // Ended attempts are forgotten; who calls for them later is told so by the server's registry.
    const forget = (): void => {
      if (this.#newest.get(plan.id) === attempt) this.#newest.delete(plan.id);
    };
    attempt.done.then(forget, forget);
    return attempt;
  }
}

function fenced(plan: AttemptPlan, newest: number): MillraceError {
  const details = { job: plan.id, generation: plan.generation, newest };
  return new MillraceError('attempt-fenced', `generation ${plan.generation} of ${plan.id} is over: ${newest} is here`, {
    details,
  });
}

function refused(error: MillraceError): AttemptHandle {
  const done = Promise.reject(error);
  done.catch(() => undefined);
  return {
    done,
    inputsEnded: new Promise(() => undefined),
    stopped: false,
    progress: () => ({ recordsIn: 0, recordsOut: 0 }),
    cancel: () => Promise.resolve(),
  };
}
