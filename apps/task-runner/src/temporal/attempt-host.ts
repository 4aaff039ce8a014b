import type { AttemptPlan, AttemptProgress, JobDescription, Json } from '@millrace/proto';

/** What the Temporal side of a runner needs of the side that runs slots. */
export interface AttemptHost {
  /** Loads the job's code, checks the options, and says what the job consists of. */
  describe(job: string, options: { readonly [key: string]: Json }): Promise<JobDescription>;
  /** So many slots are claimed, and an attempt will probably come for them. */
  prepareSlots(count: number): void;
  /** Starts the slots of the plan that name this runner. Never throws: a failure is the handle's. */
  start(plan: AttemptPlan, runnerId: string): AttemptHandle;
}

/** The part of an attempt that one runner hosts. */
export interface AttemptHandle {
  /** Resolves when every slot has finished after the last checkpoint; rejects with the first failure. */
  readonly done: Promise<void>;
  /** Resolves when the sources of every slot here have ended: a round should begin soon. May never resolve. */
  readonly inputsEnded: Promise<void>;
  /** True when the attempt was told to end with a checkpoint though its inputs have not ended: another one may follow. */
  readonly stopped: boolean;
  progress(): AttemptProgress;
  /** Stops at once without a checkpoint; `done` then rejects. Resolves when nothing runs any more. Idempotent. */
  cancel(reason: Error): Promise<void>;
}
