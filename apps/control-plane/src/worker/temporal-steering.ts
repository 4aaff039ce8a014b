import { type Clock, type ErrorCode, errorCodes, MillraceError } from '@millrace/kernel';
import {
  controlQueue,
  type JobInput,
  type JobStatus,
  type Json,
  queries,
  scheduleId,
  workflowTypes,
} from '@millrace/proto/control';
import {
  Client,
  Connection,
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
  WorkflowExecutionAlreadyStartedError,
  WorkflowFailedError,
  type WorkflowHandle,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateStage,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { Steering, UpdateRequest } from '../activities/steering.ts';

export interface TemporalSteeringOptions {
  readonly address: string;
  readonly namespace: string;
  readonly clock: Clock;
}

const callTimeoutMs = 10_000;
/** Temporal's answer to an update whose workflow ended before the update did. */
const completedTooEarly = 'AcceptedUpdateCompletedWorkflow';

/** Steering by a client of the Temporal service. Connects when first used. */
export class TemporalSteering implements Steering {
  readonly #connection: Connection;
  readonly #client: Client;
  readonly #clock: Clock;

  constructor({ address, namespace, clock }: TemporalSteeringOptions) {
    this.#connection = Connection.lazy({ address });
    this.#client = new Client({ connection: this.#connection, namespace });
    this.#clock = clock;
  }

  async find(id: string): Promise<'running' | 'over' | 'unknown'> {
    try {
      const { status } = await this.#call(() => this.#handle(id).describe());
      return status.name === 'RUNNING' ? 'running' : 'over';
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return 'unknown';
      throw error;
    }
  }

  status(id: string): Promise<JobStatus> {
    return this.#call(() => this.#handle(id).query<JobStatus>(queries.status));
  }

  async update(id: string, { name, order, updateId }: UpdateRequest, signal: AbortSignal): Promise<Json> {
    try {
      return await this.#connection.withAbortSignal(signal, async () => {
        const update = await this.#handle(id).startUpdate<Json, [Json]>(name, {
          args: [order],
          updateId,
          waitForStage: WorkflowUpdateStage.ACCEPTED,
        });
        return await update.result();
      });
    } catch (error) {
      throw ofUpdate(error, id);
    }
  }

  async cancel(id: string): Promise<void> {
    try {
      await this.#call(() => this.#handle(id).cancel());
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    }
  }

  async ended(id: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#connection.withAbortSignal(signal, () => this.#handle(id).result());
    } catch (error) {
      if (!(error instanceof WorkflowFailedError) && !(error instanceof WorkflowNotFoundError)) throw error;
    }
  }

  async start(input: JobInput, claim: string): Promise<void> {
    const id = input.id ?? input.job;
    try {
      await this.#call(() =>
        this.#client.workflow.start(workflowTypes.job, {
          workflowId: id,
          taskQueue: controlQueue,
          args: [input],
          workflowIdConflictPolicy: 'FAIL',
          memo: { claim },
          staticSummary: `job ${input.job}`,
        }),
      );
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
      const { memo } = await this.#call(() => this.#handle(id).describe());
      if (memo?.claim === claim) return;
      throw new MillraceError('job-already-running', `Job "${id}" is running.`, { cause: error, details: { id } });
    }
  }

  async scheduleCleanup(id: string, everyMs: number): Promise<void> {
    try {
      await this.#call(() =>
        this.#client.schedule.create({
          scheduleId: scheduleId(id),
          spec: { intervals: [{ every: everyMs }], jitter: Math.min(60_000, Math.floor(everyMs / 10)) },
          policies: { overlap: ScheduleOverlapPolicy.SKIP },
          action: {
            type: 'startWorkflow',
            workflowType: workflowTypes.ttlCleanup,
            workflowId: `${id}-cleanup`,
            taskQueue: controlQueue,
            args: [{ job: id }],
          },
        }),
      );
    } catch (error) {
      if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    }
  }

  async unscheduleCleanup(id: string): Promise<void> {
    try {
      await this.#call(() => this.#client.schedule.getHandle(scheduleId(id)).delete());
    } catch (error) {
      if (!(error instanceof ScheduleNotFoundError)) throw error;
    }
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }

  #handle(id: string): WorkflowHandle {
    return this.#client.workflow.getHandle(id);
  }

  #call<T>(work: () => Promise<T>): Promise<T> {
    return this.#connection.withDeadline(this.#clock.nowMs() + callTimeoutMs, work);
  }
}

/** What became of an update, with the code and the words of the job. */
function ofUpdate(error: unknown, id: string): unknown {
  if (error instanceof WorkflowNotFoundError) {
    return new MillraceError('job-not-running', `Job "${id}" does not run.`, { cause: error, details: { id } });
  }
  if (!(error instanceof WorkflowUpdateFailedError)) return error;
  const { cause } = error;
  const type = cause instanceof ApplicationFailure ? (cause.type ?? '') : '';
  if (type === completedTooEarly) {
    const words = `Job "${id}" ended before the operation was done.`;
    return new MillraceError('job-ended', words, { cause: error, details: { id } });
  }
  const code: ErrorCode = type in errorCodes ? (type as ErrorCode) : 'unexpected';
  return new MillraceError(code, cause?.message ?? error.message, { cause: error, details: { id } });
}
