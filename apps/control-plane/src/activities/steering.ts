import type { JobInput, JobStatus, Json } from '@millrace/proto/control';

/** The workflows of jobs, as activities see and steer them. */
export interface Steering {
  /** `unknown`: there never was one, or Temporal has forgotten it. */
  find(id: string): Promise<'running' | 'over' | 'unknown'>;
  status(id: string): Promise<JobStatus>;
  /** Sends an update and waits for its end; the same `updateId` again is the same update. Rejects with the job's words. */
  update(id: string, update: UpdateRequest, signal: AbortSignal): Promise<Json>;
  /** Asks the job to end; one that is over is no matter. */
  cancel(id: string): Promise<void>;
  /** Resolves when the job's workflow has ended, for whatever reason. */
  ended(id: string, signal: AbortSignal): Promise<void>;
  /** Starts the job; started already by the same `claim`, that is fine. Rejects with `job-already-running`. */
  start(input: JobInput, claim: string): Promise<void>;
  /** Has the clean-up of the job run regularly; known already, nothing changes. */
  scheduleCleanup(id: string, everyMs: number): Promise<void>;
  unscheduleCleanup(id: string): Promise<void>;
}

export interface UpdateRequest {
  readonly name: string;
  readonly order: Json;
  readonly updateId: string;
}
