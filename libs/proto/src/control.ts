import type { OperationStatus, Savepoint } from './operations.ts';

export * from './operations.ts';

/**
 * The plain JSON that crosses Temporal: inputs and results of workflows and activities. Small by contract (pointers
 * to objects, never file lists), so that no payload or history limit is near.
 */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Task queues. A runner's own queue is `runnerQueue(id)`. */
export const controlQueue = 'control';
/** Claims of slots: polled by a runner only while it has a free slot. */
export const slotQueue = 'runners';
/** Questions about job code, which only runners load: polled by every runner. */
export const jobCodeQueue = 'job-code';
/** Compactions of runners' tables: polled by every compactor. */
export const compactionQueue = 'compaction';
export function runnerQueue(runnerId: string): string {
  return `runner-${runnerId}`;
}

/** Input of the workflow `job`; all but `job` optional, so that a person can type it into the Temporal UI. */
export interface JobInput {
  /** Name of the job: the first argument of `job(name, …)` in its module. */
  readonly job: string;
  /** Identity of this job's state; default: the name. Two jobs of one name need two ids. */
  readonly id?: string;
  readonly parallelism?: number;
  readonly maxParallelism?: number;
  readonly checkpointIntervalMs?: number;
  readonly options?: { readonly [key: string]: Json };
  /**
   * Where to start: `latest` resumes from the newest checkpoint of an unfinished earlier run and otherwise starts
   * empty; `empty` discards what an earlier run left; or a checkpoint or savepoint of the job.
   */
  readonly from?: StartFrom;
  /**
   * Resume also when the job's operators with state are not those of the checkpoint: state of those that are gone is
   * dropped, those that are new start empty. Otherwise such a checkpoint is refused.
   */
  readonly allowDroppedState?: boolean;
  /** What barriers do that meet records before them; default: the cluster's, see the control plane's settings. */
  readonly checkpointMode?: CheckpointMode;
  /** In the mode `aligned-timeout`: how long a barrier waits before it overtakes, milliseconds; default 1000. */
  readonly alignTimeoutMs?: number;
  /** Where tables of the embedded store are compacted; default: as the runners are set. */
  readonly compaction?: CompactionPlace;
  /** Registered checkpoints to keep. */
  readonly checkpointsRetained?: number;
  /** Failures in a row, without a checkpoint between them, before the job gives up. */
  readonly failuresMax?: number;
  /** Longest time a checkpoint round may take before it is aborted. */
  readonly roundTimeoutMs?: number;
  /** How often the workflow `ttlCleanup` runs for this job; fixed when the job is first started. */
  readonly cleanupIntervalMs?: number;
}

/**
 * `aligned`: a barrier waits for the records before it. `unaligned`: it overtakes them, and they are stored with the
 * checkpoint. `aligned-timeout`: it waits for a while, then overtakes. Checkpoints of all modes restore in all modes.
 */
export const checkpointModes = ['aligned', 'unaligned', 'aligned-timeout'] as const;
export type CheckpointMode = (typeof checkpointModes)[number];

/** `local`: in the runner, on a thread of the slot. `remote`: by compactors, and in the runner when none answers. */
export const compactionPlaces = ['local', 'remote'] as const;
export type CompactionPlace = (typeof compactionPlaces)[number];

/** Input of the activity `compact`, which a runner starts on the queue of compactors. */
export interface CompactionTask {
  /** Of the job whose state it is. */
  readonly id: string;
  readonly generation: number;
  /** FileDelegation of @millrace/ufs: under it the output is made. */
  readonly output: { readonly prefix: string };
  /** MergeJson of @millrace/lsm. */
  readonly merge: Json;
  readonly traceparent?: string;
}

/** Result of `compact`: tables that the owner publishes, or not. */
export interface CompactionResult {
  /** A list of TableInfoJson of @millrace/lsm. */
  readonly tables: Json;
  /** Number of the attempt that made them, from 1. */
  readonly attempt: number;
}

/**
 * Where a run starts: the newest checkpoint of an unfinished run, nothing, or a checkpoint or savepoint of the job's
 * own. `claim`: the savepoint becomes one of the job's checkpoints.
 */
export type StartFrom =
  | 'latest'
  | 'empty'
  | { readonly checkpoint: number }
  | { readonly savepoint: string; readonly claim?: boolean | undefined };

/** A JobInput with every default filled in; made by the activity `prepareJob`. */
export interface JobSettings {
  readonly id: string;
  readonly job: string;
  readonly parallelism: number;
  readonly maxParallelism: number;
  readonly checkpointIntervalMs: number;
  readonly options: { readonly [key: string]: Json };
  readonly from: StartFrom;
  readonly allowDroppedState?: boolean;
  /** See {@link AttemptPlan.overtakeAfterMs}. */
  readonly overtakeAfterMs?: number;
  /** See {@link JobInput.compaction}. */
  readonly compaction?: CompactionPlace;
  readonly checkpointsRetained: number;
  readonly failuresMax: number;
  readonly roundTimeoutMs: number;
  /** Absent in settings of older versions. */
  readonly cleanupIntervalMs?: number;
}

/** Input of `describeJob`: a runner loads the job's code and checks the options against its schema. */
export interface DescribeJobInput {
  readonly job: string;
  readonly options: { readonly [key: string]: Json };
}

/** What a job's code says of itself; the answer of the activity `describeJob`. */
export interface JobDescription {
  readonly job: string;
  readonly codeHash: string;
  readonly operators: readonly OperatorDescription[];
  readonly edges: readonly EdgeDescription[];
}

export interface OperatorDescription {
  readonly uid: string;
  readonly kind: string;
  /** Operators of one chain run as one call. */
  readonly chain: number;
  readonly stateful: boolean;
}

export interface EdgeDescription {
  readonly from: string;
  readonly to: string;
  readonly partitioning: 'forward' | 'hash' | 'rebalance' | 'broadcast' | 'custom';
}

/** The answer of `claimSlot`. */
export interface ClaimedSlot {
  readonly runnerId: string;
  /** host:port of the runner's gRPC server. */
  readonly address: string;
  /** Names the claim until `runAttempt` uses it or it lapses. */
  readonly lease: string;
  /** How long the runner keeps the slot for this claim; absent: not known. */
  readonly leaseMs?: number;
  /** How long the runner keeps the slot for the next attempt of the same job, when one ends; absent: it does not. */
  readonly keptMs?: number;
}

/** Input of `claimSlot`: who asks, for logs. */
export interface ClaimSlotInput {
  readonly id: string;
  readonly generation: number;
  readonly subtask: number;
}

/** Which runner hosts which subtask. Index in `slots` = subtask. */
export interface AttemptPlan {
  readonly id: string;
  readonly job: string;
  readonly generation: number;
  /** JobRecord.lineage; absent when the record has none. */
  readonly lineage?: string;
  readonly codeHash: string;
  readonly parallelism: number;
  readonly maxParallelism: number;
  readonly options: { readonly [key: string]: Json };
  readonly slots: readonly ClaimedSlot[];
  /** Path on the DFS of the checkpoint (CheckpointContents) to start from; null for an empty start. */
  readonly restoreFrom: string | null;
  /** See {@link JobInput.allowDroppedState}. */
  readonly allowDroppedState?: boolean;
  /** How long barriers wait behind records before they overtake, milliseconds; absent: for ever, 0: not at all. */
  readonly overtakeAfterMs?: number;
  /** See {@link JobInput.compaction}. */
  readonly compaction?: CompactionPlace;
  /** The workflow that runs this attempt's checkpoint rounds; told when inputs have ended. */
  readonly checkpointLoopId: string;
}

/** Input of `runAttempt` on a runner's own queue: it runs those slots of the plan that name this runner. */
export interface RunAttemptInput {
  readonly plan: AttemptPlan;
  readonly runnerId: string;
}

/** Details of the heartbeats of `runAttempt`. */
export interface AttemptProgress {
  readonly recordsIn: number;
  readonly recordsOut: number;
}

/** What the object at `CheckpointEntry.path` and `AttemptPlan.restoreFrom` holds. */
export interface CheckpointContents {
  readonly version: 1;
  readonly id: string;
  readonly checkpoint: number;
  readonly generation: number;
  readonly parallelism: number;
  readonly maxParallelism: number;
  readonly codeHash: string;
  /** One SlotSnapshot of @millrace/streams per subtask, in the order of subtasks. */
  readonly slots: readonly Json[];
}

/** A registered checkpoint as the job's record keeps it. */
export interface CheckpointEntry {
  readonly checkpoint: number;
  readonly generation: number;
  /** Path on the DFS of the object that lists every subtask's handles (CheckpointContents). */
  readonly path: string;
  readonly parallelism: number;
  readonly createdMs: number;
  readonly bytesPut: number;
  readonly bytesLinked: number;
  /** True for the checkpoint that ended a bounded job. */
  readonly last: boolean;
}

/** The durable truth about a job: a fenced, versioned object on the DFS. */
export interface JobRecord {
  readonly id: string;
  readonly job: string;
  readonly generation: number;
  /**
   * The claim that made this record. Generations of one lineage are ordered; those of two records of one job (a fresh
   * data directory) are not. Absent in records that are older than lineages.
   */
  readonly lineage?: string;
  /** The newest round number ever used; never reused. */
  readonly round: number;
  readonly checkpoints: readonly CheckpointEntry[];
  readonly maxParallelism: number;
  readonly finished: boolean;
  /** The run (first execution of the workflow `job`) that claimed the newest generation. */
  readonly run: string;
  /** Checkpoints up to this number belong to earlier runs that this run does not continue. */
  readonly runStart: number;
  /** Rounds up to this number that are not registered can never be. */
  readonly closedRound: number;
  /** The newest checkpoints that retention gave up and whose objects may still be there. */
  readonly dropping: readonly CheckpointEntry[];
  /** Owned by the user: no retention drops them. Absent in records that are older than savepoints. */
  readonly savepoints?: readonly SavepointEntry[];
  /** What this run starts from while it has no checkpoint of its own, when that is not its newest. */
  readonly base?: CheckpointEntry;
  /** Of a job that began as a fork. */
  readonly fork?: { readonly parent: string; readonly checkpoint: number; readonly claim: string };
  /** What the newest attempt was claimed with; absent in older records. */
  readonly settings?: JobSettings;
  /** The user has deleted the job: nothing of it is kept, and no attempt can begin from it. */
  readonly deleted?: boolean;
  /** Claims of forks that can never be, although no other job has taken the id: their pins are released. */
  readonly refusedForks?: readonly string[];
}

/** A registered checkpoint that the user keeps. */
export interface SavepointEntry extends CheckpointEntry, Savepoint {}

export interface RoundInput {
  readonly plan: AttemptPlan;
  readonly checkpointsRetained: number;
  readonly timeoutMs: number;
  /** Number of the round; the loop numbers rounds so that the round's workflow id can name it. */
  readonly checkpoint: number;
  /** The attempt ends with this checkpoint: sources stop at its barrier, and slots end when it is complete. */
  readonly stop?: boolean;
  /** Names of savepoints to make of it; an empty name stands for the default. */
  readonly savepoints?: readonly string[];
}

export interface RoundResult {
  readonly checkpoint: number;
  readonly path: string;
  readonly durationMs: number;
  readonly bytesPut: number;
  readonly bytesLinked: number;
  readonly last: boolean;
}

/** Names of the workflow types. */
export const workflowTypes = {
  job: 'job',
  attempt: 'attempt',
  checkpointLoop: 'checkpointLoop',
  checkpointRound: 'checkpointRound',
  rescale: 'rescale',
  savepoint: 'savepoint',
  stop: 'stop',
  restore: 'restore',
  fork: 'fork',
  release: 'release',
  deleteJob: 'deleteJob',
  ttlCleanup: 'ttlCleanup',
  checkpoints: 'checkpoints',
} as const;

/** Names of signals and queries, shared by workflows and clients. */
export const signals = {
  /** To `job`: stop without a final checkpoint. */
  cancel: 'cancel',
  /** To the checkpoint loop: begin a round now. */
  checkpointNow: 'checkpointNow',
  /** From `attempt` to its `job`: every slot is claimed; carries the AttemptPlan. */
  attemptPlanned: 'attemptPlanned',
} as const;
/** Both `job` (JobStatus) and `checkpointLoop` (LoopStatus) answer `status`. */
export const queries = { status: 'status' } as const;

/** Search attributes that the workflows set; a cluster must have them. */
export const searchAttributes = {
  millraceJob: 'KEYWORD',
  millraceState: 'KEYWORD',
  millraceGeneration: 'INT',
  millraceParallelism: 'INT',
  millraceCheckpoint: 'INT',
} as const;

export type JobState =
  | 'starting'
  | 'waiting-for-slots'
  | 'running'
  | 'restarting'
  | 'rescaling'
  | 'stopping'
  | 'finished'
  | 'stopped'
  | 'failed'
  | 'cancelled';

/** Answer of the query `status` of a `job` workflow. */
export interface JobStatus {
  readonly id: string;
  readonly job: string;
  readonly state: JobState;
  /** One sentence: what the job is doing or waiting for. */
  readonly details: string;
  readonly generation: number;
  readonly parallelism: number;
  readonly failures: number;
  readonly lastFailure: string | null;
  /** The workflow itself knows it only between attempts; clients fill it in from the checkpoint loop. */
  readonly lastCheckpoint: RoundResult | null;
  readonly plan: AttemptPlan | null;
  readonly description: JobDescription | null;
  /** What is being done to the job; absent in answers of older versions. */
  readonly operation?: OperationStatus | null;
}

/** Answer of the query `status` of a `checkpointLoop` workflow. */
export interface LoopStatus {
  readonly id: string;
  readonly generation: number;
  /** The round in flight, if any. */
  readonly inFlight: number | null;
  readonly roundsDone: number;
  readonly roundsFailed: number;
  readonly lastFailure: string | null;
  /** The newest results, oldest first, at most 20. */
  readonly recent: readonly RoundResult[];
}

/** Result of a `job` workflow that ended well, was stopped with a last checkpoint, or by `cancel` without one. */
export interface JobResult {
  readonly id: string;
  readonly state: 'finished' | 'stopped' | 'cancelled';
  readonly generation: number;
  readonly checkpoints: number;
  readonly lastCheckpoint: RoundResult | null;
}
