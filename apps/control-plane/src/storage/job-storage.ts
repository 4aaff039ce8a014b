import type { CheckpointContents, CheckpointEntry, JobRecord } from '@millrace/proto/control';

/** What the control plane keeps on the DFS: a job's fenced record and the descriptions of its checkpoints. */
export interface JobStorage {
  readRecord(id: string): Promise<JobRecord | undefined>;
  /**
   * Replaces the record by what `change` makes of its newest version; again on the version of whoever was faster. The
   * same object returned writes nothing. What `change` throws passes on.
   */
  updateRecord(id: string, change: (record: JobRecord | undefined) => JobRecord): Promise<JobRecord>;
  /** Ids of all jobs with a record. */
  listJobs(): Promise<readonly string[]>;
  writeCheckpoint(id: string, path: string, contents: CheckpointContents): Promise<void>;
  /** Rejects with `job-record-broken` when it is missing or unreadable. */
  readCheckpoint(id: string, path: string): Promise<CheckpointContents>;
  /** The first of `holders` that does not exist; undefined when all do. */
  missingHolder(id: string, holders: readonly string[]): Promise<string | undefined>;
  /** Makes the checkpoint a holder of everything that it names. Idempotent. */
  hold(id: string, path: string, holders: readonly string[]): Promise<void>;
  /**
   * Removes what only `dropped` checkpoints hold: never what one of `live` names. Idempotent. The answer are those that
   * are gone completely.
   */
  drop(
    id: string,
    dropped: readonly CheckpointEntry[],
    live: readonly CheckpointEntry[],
  ): Promise<readonly CheckpointEntry[]>;
}
