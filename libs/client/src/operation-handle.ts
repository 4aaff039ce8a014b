import { type ErrorCode, errorCodes, MillraceError } from '@millrace/kernel';
import { type OperationStatus, queries } from '@millrace/proto/control';
import { WorkflowFailedError, type WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure, CancelledFailure, TerminatedFailure } from '@temporalio/common';
import { fromTemporal } from './errors.ts';
import type { ClientParts } from './millrace-client.ts';

/** An operation on a job, as a workflow of its own. */
export class OperationHandle<T> {
  readonly workflowId: string;
  readonly #parts: ClientParts;

  constructor(workflowId: string, parts: ClientParts) {
    this.workflowId = workflowId;
    this.#parts = parts;
  }

  /** What it has been at so far, oldest first. */
  async steps(): Promise<readonly OperationStatus[]> {
    const { connection, clock, timeoutMs, address } = this.#parts;
    try {
      return await connection.withDeadline(clock.nowMs() + timeoutMs, () =>
        this.#workflow.query<readonly OperationStatus[]>(queries.status),
      );
    } catch (error) {
      throw fromTemporal(error, { id: this.workflowId, address });
    }
  }

  /** Waits for the end. Rejects with what refused or failed it: `job-input`, `job-not-running`, `rescale-rolled-back`, … */
  async result(): Promise<T> {
    try {
      return (await this.#workflow.result()) as T;
    } catch (error) {
      if (error instanceof WorkflowFailedError) throw failure(error, this.workflowId);
      throw fromTemporal(error, { id: this.workflowId, address: this.#parts.address });
    }
  }

  get #workflow(): WorkflowHandle {
    return this.#parts.client.workflow.getHandle(this.workflowId);
  }
}

function failure(error: WorkflowFailedError, workflowId: string): MillraceError {
  const { cause } = error;
  if (cause instanceof CancelledFailure || cause instanceof TerminatedFailure) {
    return new MillraceError(
      'cancelled',
      `The operation ${workflowId} was ended; the job may carry it out all the same.`,
      {
        cause: error,
      },
    );
  }
  const type = cause instanceof ApplicationFailure ? (cause.type ?? '') : '';
  const code: ErrorCode = type in errorCodes ? (type as ErrorCode) : 'unexpected';
  return new MillraceError(code, cause?.message ?? error.message, { cause: error, details: { workflowId } });
}
