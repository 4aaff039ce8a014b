import { type Clock, MillraceError } from '@millrace/kernel';
import {
  type CheckpointList,
  type CleanupInput,
  type CleanupResult,
  controlQueue,
  type DeleteInput,
  type ForkInput,
  type JobInput,
  type JobState,
  type ReleaseInput,
  type RescaleInput,
  type RescaleResult,
  type RestoreInput,
  type RestoreResult,
  type SavepointInput,
  type SavepointResult,
  type StopInput,
  type StopResult,
  workflowTypes,
} from '@millrace/proto/control';
import {
  type Client,
  type Connection,
  WorkflowExecutionAlreadyStartedError,
  type WorkflowExecutionInfo,
} from '@temporalio/client';
import { fromTemporal } from './errors.ts';
import { JobHandle } from './job-handle.ts';
import { OperationHandle } from './operation-handle.ts';

export interface ClientParts {
  readonly client: Client;
  readonly connection: Connection;
  readonly address: string;
  readonly clock: Clock;
  readonly timeoutMs: number;
}

/** A job as lists show it: its newest run, from the search attributes of its workflow. */
export interface JobSummary {
  readonly id: string;
  readonly job: string | null;
  readonly state: JobState | null;
  readonly generation: number | null;
  readonly parallelism: number | null;
  readonly startedMs: number;
  readonly endedMs: number | null;
}

/** Starts and steers jobs. One connection, shared by all handles. */
export class MillraceClient {
  readonly #parts: ClientParts;

  constructor(parts: ClientParts) {
    this.#parts = parts;
  }

  /** The Temporal client underneath. */
  get temporal(): Client {
    return this.#parts.client;
  }

  /** Rejects with `job-already-running`; what is wrong with the input itself is the job's failure (`result`). */
  async startJob(input: JobInput): Promise<JobHandle> {
    const id = input.id ?? input.job;
    try {
      await this.#call(() =>
        this.#parts.client.workflow.start(workflowTypes.job, {
          workflowId: id,
          taskQueue: controlQueue,
          args: [input],
          workflowIdConflictPolicy: 'FAIL',
          staticSummary: `job ${input.job}`,
        }),
      );
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) {
        throw new MillraceError('job-already-running', `Job "${id}" is running.`, { cause: error, details: { id } });
      }
      throw fromTemporal(error, { id, address: this.#parts.address });
    }
    return this.job(id);
  }

  /** A handle; whether the job exists shows at the first call. */
  job(id: string): JobHandle {
    return new JobHandle(id, this.#parts);
  }

  /** Changes the parallelism of a running job. */
  rescale(input: RescaleInput): Promise<OperationHandle<RescaleResult>> {
    return this.#operate(workflowTypes.rescale, input);
  }

  /** Takes a checkpoint that is kept until it is released. */
  savepoint(input: SavepointInput): Promise<OperationHandle<SavepointResult>> {
    return this.#operate(workflowTypes.savepoint, input);
  }

  /** Ends a running job with a last checkpoint. */
  stop(input: StopInput): Promise<OperationHandle<StopResult>> {
    return this.#operate(workflowTypes.stop, input);
  }

  /** Has a job go on from an earlier checkpoint or a savepoint. */
  restore(input: RestoreInput): Promise<OperationHandle<RestoreResult>> {
    return this.#operate(workflowTypes.restore, input);
  }

  /** Starts a new job from a checkpoint of another; no state is copied. */
  fork(input: ForkInput): Promise<OperationHandle<RestoreResult>> {
    return this.#operate(workflowTypes.fork, input);
  }

  /** Gives a savepoint up. */
  release(input: ReleaseInput): Promise<OperationHandle<CleanupResult>> {
    return this.#operate(workflowTypes.release, input);
  }

  /** Deletes a job that does not run, with everything that it holds. */
  deleteJob(input: DeleteInput): Promise<OperationHandle<CleanupResult>> {
    return this.#operate(workflowTypes.deleteJob, input);
  }

  /** Deletes now what the job needs no longer. */
  cleanup(input: CleanupInput): Promise<OperationHandle<CleanupResult>> {
    return this.#operate(workflowTypes.ttlCleanup, input);
  }

  /** What a job can be restored or forked from. */
  async checkpoints(job: string): Promise<CheckpointList> {
    return await (await this.#operate<CheckpointList>(workflowTypes.checkpoints, { job })).result();
  }

  /** Newest first; each id once. */
  async listJobs(limit = 100): Promise<readonly JobSummary[]> {
    const jobs = new Map<string, JobSummary>();
    const { client, address } = this.#parts;
    try {
      const query = `WorkflowType = '${workflowTypes.job}'`;
      for await (const info of client.workflow.list({ query, pageSize: Math.min(limit, 100) })) {
        if (!jobs.has(info.workflowId)) jobs.set(info.workflowId, summary(info));
        if (jobs.size >= limit) break;
      }
    } catch (error) {
      throw fromTemporal(error, { address });
    }
    return [...jobs.values()];
  }

  /** Idempotent. */
  async close(): Promise<void> {
    await this.#parts.connection.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Of each kind one at a time for each job. Rejects with `operation-refused` while such a one is under way. */
  async #operate<T>(type: string, input: { readonly job: string }): Promise<OperationHandle<T>> {
    const workflowId = `${input.job}:${type}`;
    const { client, address } = this.#parts;
    try {
      await this.#call(() =>
        client.workflow.start(type, {
          workflowId,
          taskQueue: controlQueue,
          args: [input],
          workflowIdConflictPolicy: 'FAIL',
          staticSummary: `${type} ${input.job}`,
        }),
      );
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError))
        throw fromTemporal(error, { id: input.job, address });
      const words = `Another ${type} of job "${input.job}" is under way: workflow ${workflowId}.`;
      throw new MillraceError('operation-refused', words, { cause: error, details: { id: input.job, workflowId } });
    }
    return new OperationHandle<T>(workflowId, this.#parts);
  }

  #call<T>(work: () => Promise<T>): Promise<T> {
    return this.#parts.connection.withDeadline(this.#parts.clock.nowMs() + this.#parts.timeoutMs, work);
  }
}

function summary(info: WorkflowExecutionInfo): JobSummary {
  const attributes = info.searchAttributes as Readonly<Record<string, readonly unknown[] | undefined>>;
  const text = (name: string): string | null => (attributes[name]?.[0] as string | undefined) ?? null;
  const number = (name: string): number | null => (attributes[name]?.[0] as number | undefined) ?? null;
  return {
    id: info.workflowId,
    job: text('millraceJob'),
    state: stateOf(info.status.name, text('millraceState') as JobState | null),
    generation: number('millraceGeneration'),
    parallelism: number('millraceParallelism'),
    startedMs: info.startTime.getTime(),
    endedMs: info.closeTime?.getTime() ?? null,
  };
}

/** A workflow that was ended from outside did not set its last state. */
function stateOf(status: string, state: JobState | null): JobState | null {
  if (status === 'TERMINATED' || status === 'CANCELLED') return 'cancelled';
  if (status === 'FAILED' || status === 'TIMED_OUT') return 'failed';
  return state;
}
