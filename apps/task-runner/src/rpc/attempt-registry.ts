import { MillraceError } from '@millrace/kernel';
import type { HostedAttempt } from './attempt-calls.ts';

/** What a call names (`millrace.v1.Target`). */
export interface CallTarget {
  readonly job: string;
  readonly generation: bigint;
  readonly runnerId: string;
}

const jobsRemembered = 1000;

/**
 * The attempts that this runner hosts, newest generation per job. It remembers the generations of attempts that have
 * ended, so that a call for an older one is told `fenced` and not to try again.
 */
export class AttemptRegistry {
  readonly #runnerId: string;
  readonly #attempts = new Map<string, HostedAttempt>();
  /** In order of use, the oldest forgotten beyond `jobsRemembered`. */
  readonly #newest = new Map<string, number>();

  constructor(runnerId: string) {
    this.#runnerId = runnerId;
  }

  /**
   * Makes an attempt known. An older one of the job is fenced: its exchange ends. Throws `attempt-fenced` when a newer
   * one has been here. The result makes it unknown again.
   */
  register(attempt: HostedAttempt): () => void {
    const { job, generation } = attempt;
    const newest = this.#newest.get(job);
    if (newest !== undefined && generation < newest) throw fenced(job, generation, newest);
    const older = this.#attempts.get(job);
    this.#attempts.set(job, attempt);
    this.#remember(job, generation);
    if (older !== undefined && older.generation < generation) {
      void older.exchange.close(fenced(job, older.generation, generation)); // with a reason it waits for nothing
    }
    return () => {
      if (this.#attempts.get(job) === attempt) this.#attempts.delete(job);
    };
  }

  /** The attempt that a call means. Throws `runner-mismatch`, `attempt-fenced` or `attempt-unknown`. */
  find(target: CallTarget | undefined): HostedAttempt {
    if (target === undefined) throw new MillraceError('bad-argument', 'a call must name its target');
    const { job, runnerId } = target;
    const generation = Number(target.generation);
    if (runnerId !== this.#runnerId) {
      throw new MillraceError('runner-mismatch', `this is runner ${this.#runnerId}, not ${runnerId}`);
    }
    const newest = this.#newest.get(job);
    if (newest !== undefined && generation < newest) throw fenced(job, generation, newest);
    const attempt = this.#attempts.get(job);
    if (attempt?.generation === generation) return attempt;
    throw new MillraceError('attempt-unknown', `runner ${runnerId} does not host generation ${generation} of ${job}`);
  }

  #remember(job: string, generation: number): void {
    this.#newest.delete(job);
    this.#newest.set(job, generation);
    if (this.#newest.size <= jobsRemembered) return;
    for (const old of this.#newest.keys()) {
      if (this.#attempts.has(old)) continue;
      this.#newest.delete(old);
      return;
    }
  }
}

function fenced(job: string, generation: number, newest: number): MillraceError {
  const details = { job, generation, newest };
  return new MillraceError('attempt-fenced', `generation ${generation} of ${job} is over: ${newest} runs`, { details });
}
