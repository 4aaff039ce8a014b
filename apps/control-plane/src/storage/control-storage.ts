import type { CheckpointContents, CheckpointEntry, JobRecord } from '@millrace/proto/control';
import type { TraceContext } from '@millrace/telemetry';
import type { EraseReport, Fork, SweepReport } from '@millrace/ufs';
import type { ForkJob } from './fork-job.ts';

/** What the control plane keeps on the DFS: a job's fenced record and its checkpoints. Paths are whole DFS paths. */
export interface ControlStorage {
  readRecord(id: string): Promise<JobRecord | undefined>;
  /**
   * Starts the next generation: `change` makes the record for it. The same claimant again gets the same generation.
   */
  claimRecord(
    id: string,
    claimant: string,
    change: (record: JobRecord | undefined, generation: number) => JobRecord,
  ): Promise<JobRecord>;
  /**
   * Replaces the record by what `change` makes of its newest version; again on the version of whoever was faster. The
   * same object returned writes nothing. Rejects with kind `fenced` when a newer generation has claimed.
   */
  updateRecord(
    owner: JobGeneration,
    change: (record: JobRecord | undefined) => JobRecord,
    parent?: TraceContext,
  ): Promise<JobRecord>;
  /** Removes old versions of the record. */
  collectRecord(id: string): Promise<void>;

  checkpointPath(id: string, checkpoint: number, generation: number): string;
  writeCheckpoint(path: string, contents: CheckpointContents, parent?: TraceContext): Promise<void>;
  /** Rejects with `job-record-broken` when it is missing or unreadable. */
  readCheckpoint(path: string, parent?: TraceContext): Promise<CheckpointContents>;
  /** The first of the checkpoint's holders that does not exist; undefined when all do. */
  missingHolder(contents: CheckpointContents): Promise<string | undefined>;
  /** Makes the checkpoint a holder of everything that it names. Idempotent. */
  hold(contents: CheckpointContents, parent?: TraceContext): Promise<void>;
  /**
   * Removes what only `dropped` checkpoints hold: never what one of `live`, or a pin, names. Idempotent, and limited in
   * time: what is not done is left. The answer are those that are gone completely. Rejects, with nothing deleted, when a live checkpoint cannot be read.
   */
  drop(
    id: string,
    dropped: readonly CheckpointEntry[],
    live: readonly CheckpointEntry[],
  ): Promise<readonly CheckpointEntry[]>;
  /**
   * Removes what crashes, aborted rounds and dead attempts of the job left and that is older than `graceMs`; undefined
   * when there is no record. Rejects, with nothing deleted, when something that lives cannot be read.
   */
  sweep(id: string, graceMs: number): Promise<SweepReport | undefined>;
  /** Makes a job that begins with a checkpoint of another: see `fork-job.ts`. */
  fork(wanted: ForkJob): Promise<Pick<Fork, 'files' | 'bytesLinked'>>;
  /** Removes everything of a job whose record says that it is deleted, but what forks of it hold. Idempotent. */
  erase(id: string): Promise<EraseReport>;
  /**
   * Removes what the control plane wrote for a round that can never be registered. The tables' snapshots and files stay
   * for the sweep: the attempt may have them in use, and the snapshots are the proof of when it has not. Idempotent.
   */
  discardRound(id: string, checkpoint: number, generation: number): Promise<void>;
}

export interface JobGeneration {
  readonly id: string;
  readonly generation: number;
}
