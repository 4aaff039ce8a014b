import { MillraceError } from '@millrace/kernel';
import {
  type JobResult,
  type JobStatus,
  type LoopStatus,
  queries,
  type RoundResult,
  signals,
} from '@millrace/proto/control';
import { QueryNotRegisteredError, WorkflowFailedError, type WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure, CancelledFailure, TerminatedFailure } from '@temporalio/common';
import { fromTemporal } from './errors.ts';
import type { ClientParts } from './millrace-client.ts';

/** One job, by its id: always its newest run. */
export class JobHandle {
  readonly id: string;
  readonly #parts: ClientParts;

  constructor(id: string, parts: ClientParts) {
    this.id = id;
    this.#parts = parts;
  }

  /** State, attempt and newest checkpoint. Rejects with `job-not-found`. */
  async status(): Promise<JobStatus> {
    const status = await this.#call(() => this.#workflow.query<JobStatus>(queries.status));
    const loop = await this.#loop(status);
    return { ...status, lastCheckpoint: loop?.recent.at(-1) ?? status.lastCheckpoint };
  }

  /** The checkpoint rounds of the current attempt; undefined while none runs. */
  async loop(): Promise<LoopStatus | undefined> {
    return await this.#loop(await this.#call(() => this.#workflow.query<JobStatus>(queries.status)));
  }

  /** The newest rounds of the current attempt, oldest first. */
  async rounds(): Promise<readonly RoundResult[]> {
    return (await this.loop())?.recent ?? [];
  }

  /** Asks the job to stop without a final checkpoint; `result` tells when it has. */
  async cancel(): Promise<void> {
    await this.#call(() => this.#workflow.cancel());
  }

  /** Begins a round now. Rejects with `job-not-found` while no attempt runs. */
  async checkpointNow(): Promise<void> {
    const { plan } = await this.#call(() => this.#workflow.query<JobStatus>(queries.status));
    if (plan === null) {
      throw new MillraceError('job-not-found', `No attempt of job "${this.id}" runs at the moment.`, {
        details: { id: this.id },
      });
    }
    await this.#call(() => this.#parts.client.workflow.getHandle(plan.checkpointLoopId).signal(signals.checkpointNow));
  }

  /**
   * Waits for the end. Rejects with the job's own failure: `cancelled`, the code that ended it (`job-input`, …), or
   * `job-failed`.
   */
  async result(): Promise<JobResult> {
    try {
      return (await this.#workflow.result()) as JobResult;
    } catch (error) {
      if (error instanceof WorkflowFailedError) throw this.#failure(error);
      throw fromTemporal(error, { id: this.id, address: this.#parts.address });
    }
  }

  #failure(error: WorkflowFailedError): MillraceError {
    const { cause } = error;
    if (cause instanceof CancelledFailure || cause instanceof TerminatedFailure) {
      return new MillraceError(
        'cancelled',
        `Job "${this.id}" was ${cause instanceof CancelledFailure ? 'cancelled' : 'terminated'}.`,
        {
          cause: error,
        },
      );
    }
    const type = cause instanceof ApplicationFailure ? cause.type : undefined;
    const code =
      type === 'job-input' || type === 'job-generation-fenced' || type === 'job-options' ? type : 'job-failed';
    return new MillraceError(code, cause?.message ?? error.message, {
      cause: error,
      details: { id: this.id, code: type ?? null },
    });
  }

  async #loop(status: JobStatus): Promise<LoopStatus | undefined> {
    const { plan } = status;
    if (plan === null) return undefined;
    try {
      return await this.#call(() =>
        this.#parts.client.workflow.getHandle(plan.checkpointLoopId).query<LoopStatus>(queries.status),
      );
    } catch (error) {
      // The loop may not have started yet, or be gone already.
      if (error instanceof MillraceError && error.code === 'job-not-found') return undefined;
      if (error instanceof MillraceError && error.cause instanceof QueryNotRegisteredError) return undefined;
      throw error;
    }
  }

  get #workflow(): WorkflowHandle {
    return this.#parts.client.workflow.getHandle(this.id);
  }

  async #call<T>(work: () => Promise<T>): Promise<T> {
    const { connection, clock, timeoutMs, address } = this.#parts;
    try {
      return await connection.withDeadline(clock.nowMs() + timeoutMs, work);
    } catch (error) {
      throw fromTemporal(error, { id: this.id, address });
    }
  }
}
