import type { CheckpointList, CleanupResult, JobInput, Json } from '@millrace/proto/control';

/** An operation's input, checked; `order` is what the job is told. */
export interface CheckedOperation {
  readonly id: string;
  readonly order: Readonly<Record<string, Json>>;
}

export type CheckName = 'rescale' | 'savepoint' | 'stop' | 'release' | 'deleteJob' | 'ttlCleanup' | 'checkpoints';

export interface SteerInput {
  readonly id: string;
  /** Name of the update. */
  readonly name: string;
  readonly order: Json;
  readonly updateId: string;
}

/** With what a job is started by `restore` or `fork`, and from which checkpoint. */
export interface StartPlan {
  readonly input: JobInput;
  readonly path: string;
  readonly checkpoint: number;
  readonly isRunning: boolean;
  readonly bytesLinked: number;
}

export type CleanupPart = Omit<CleanupResult, 'id'>;

/** What the workflows of operations ask of a control-plane process. All of it may be repeated. */
export interface OperationActivities {
  /** Refuses in words what cannot be done. */
  checkOperation(input: { readonly name: CheckName; readonly input: Json | undefined }): Promise<CheckedOperation>;
  /** Sends the job an update and waits for its end. */
  steerJob(input: SteerInput): Promise<Json>;
  planRestore(input: Json | undefined): Promise<StartPlan>;
  /** Makes the new job's record; `claim` names this fork. */
  forkJob(input: { readonly input: Json | undefined; readonly claim: string }): Promise<StartPlan>;
  listCheckpoints(input: { readonly id: string }): Promise<CheckpointList>;
  /** Cancels the job and waits until it has ended. */
  endJob(input: { readonly id: string }): Promise<void>;
  startJob(input: { readonly input: JobInput; readonly claim: string }): Promise<void>;
  /** Resolves when an attempt of the job runs; rejects when the job ended before. */
  awaitJob(input: { readonly id: string }): Promise<void>;
  releaseSavepoint(input: { readonly id: string; readonly savepoint: string }): Promise<void>;
  markDeleted(input: { readonly id: string; readonly claim: string; readonly savepoints: boolean }): Promise<void>;
  eraseJob(input: { readonly id: string }): Promise<CleanupPart>;
  /** Deletes what retention has given up. */
  expireCheckpoints(input: { readonly id: string }): Promise<CleanupPart>;
  sweepJob(input: { readonly id: string; readonly graceMs: number }): Promise<CleanupPart>;
  scheduleCleanup(input: { readonly id: string; readonly everyMs: number }): Promise<void>;
}
