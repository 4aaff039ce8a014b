import type { Json } from './control.ts';

/**
 * Operations on a job: each is a workflow that a person can start with small JSON, and an update of the job's workflow.
 * `job` in these inputs is the id of the job.
 */

/** Updates of the workflow `job`. Each may be sent by a person, too: see the inputs. */
export const updates = {
  /** {@link RescaleOrder} → {@link RescaleResult} */
  rescale: 'rescale',
  /** {@link SavepointOrder} → {@link SavepointResult} */
  savepoint: 'savepoint',
  /** {@link CheckpointOrder} → {@link RoundResult} */
  checkpoint: 'checkpoint',
  /** {@link StopOrder} → {@link StopResult} */
  stop: 'stop',
} as const;
export type OperationKind = 'rescale' | 'savepoint' | 'checkpoint' | 'stop' | 'restore';

/** How an operation that a workflow carries out is named to the job, and where the job tells of its progress. */
export interface OrderOrigin {
  /** Names the operation; default: a new name. */
  readonly operation?: string;
  /** Workflow that is told of progress by the signal `operationProgress`. */
  readonly reply?: string;
}

/** Input of the workflow `rescale`. */
export interface RescaleInput {
  readonly job: string;
  readonly parallelism: number;
  /** How long free slots are waited for before the job is stopped, and the new attempt after it. Default 60 s each. */
  readonly timeoutMs?: number;
}

export interface RescaleOrder extends OrderOrigin {
  readonly parallelism: number;
  readonly timeoutMs?: number;
}

export interface RescaleResult {
  readonly id: string;
  readonly from: number;
  readonly to: number;
  /** Of the attempt at the new parallelism. */
  readonly generation: number;
  /** Number of the checkpoint that the old attempt stopped with; null: it had ended before, or had not begun. */
  readonly checkpoint: number | null;
  /**
   * From the beginning of the old attempt's last round to the first record of the new attempt, or until it was ready when
   * there was none to read; null when nothing ran before.
   */
  readonly downtimeMs: number | null;
}

/** Input of the workflow `savepoint`. */
export interface SavepointInput {
  readonly job: string;
  /** Default: `savepoint-<checkpoint>`. */
  readonly name?: string;
}

export interface SavepointOrder extends OrderOrigin {
  readonly name?: string;
}

/** A checkpoint that belongs to the user: kept until it is released. */
export interface Savepoint {
  readonly name: string;
  readonly checkpoint: number;
  readonly generation: number;
  readonly path: string;
}

export interface SavepointResult extends Savepoint {
  readonly id: string;
}

export type CheckpointOrder = OrderOrigin;

/** `suspend`: with a last checkpoint, to be resumed. `drain`: sources end, windows fire, and the job is finished. */
export const stopModes = ['suspend', 'drain'] as const;
export type StopMode = (typeof stopModes)[number];

/** Input of the workflow `stop`. */
export interface StopInput {
  readonly job: string;
  readonly mode?: StopMode;
  /** Makes the last checkpoint a savepoint of this name. */
  readonly savepoint?: string;
}

export interface StopOrder extends OrderOrigin {
  readonly mode?: StopMode;
  readonly savepoint?: string;
}

export interface StopResult {
  readonly id: string;
  readonly mode: StopMode;
  readonly checkpoint: number | null;
  readonly path: string | null;
}

/**
 * Input of the workflow `restore`: the job goes on from an earlier checkpoint. It is ended first when it runs. What is
 * not said is as in its last run.
 */
export interface RestoreInput {
  readonly job: string;
  /** Number of a checkpoint or name of a savepoint; default: the newest checkpoint. */
  readonly from?: number | string;
  /** The savepoint becomes one of the job's checkpoints, dropped in its turn; otherwise it stays the user's. */
  readonly claim?: boolean;
  readonly parallelism?: number;
  readonly options?: { readonly [key: string]: Json };
  readonly allowDroppedState?: boolean;
}

/** Input of the workflow `fork`: a new job begins with a checkpoint of another one. */
export interface ForkInput {
  readonly job: string;
  /** Id of the new job. */
  readonly id: string;
  /** Number of a checkpoint or name of a savepoint; default: the newest checkpoint. */
  readonly from?: number | string;
  readonly parallelism?: number;
  readonly options?: { readonly [key: string]: Json };
  readonly allowDroppedState?: boolean;
}

/** Of `restore` and `fork`. */
export interface RestoreResult {
  readonly id: string;
  /** Path of the checkpoint that the job started from. */
  readonly from: string;
  readonly checkpoint: number;
  readonly parallelism: number;
  /** `fork`: bytes of state that the new job shares with the other; none was copied. */
  readonly bytesLinked?: number;
}

/** Input of the workflow `deleteJob`. */
export interface DeleteInput {
  readonly job: string;
  /** Also delete a job that has savepoints, with them. */
  readonly savepoints?: boolean;
}

/** Input of the workflow `release`: the savepoint is given up. */
export interface ReleaseInput {
  readonly job: string;
  readonly savepoint: string;
}

/** Answer of the workflow `checkpoints` (input {@link JobNamed}): what the job can be restored or forked from. */
export interface CheckpointList {
  readonly id: string;
  /** Oldest first. */
  readonly checkpoints: readonly ListedCheckpoint[];
}

export interface JobNamed {
  readonly job: string;
}

export interface ListedCheckpoint {
  readonly checkpoint: number;
  readonly generation: number;
  readonly parallelism: number;
  readonly createdMs: number;
  readonly bytesPut: number;
  readonly bytesLinked: number;
  readonly path: string;
  /** Names of the savepoints that it is. */
  readonly savepoints: readonly string[];
  /** Retention will drop it in its turn. */
  readonly retained: boolean;
}

/** Input of the workflow `ttlCleanup`. */
export interface CleanupInput {
  readonly job: string;
  /** Younger objects are left alone, milliseconds. Default one hour. */
  readonly graceMs?: number;
}

/** Of `ttlCleanup`, `release` and `deleteJob`: what was deleted. */
export interface CleanupResult {
  readonly id: string;
  readonly checkpointsDropped: number;
  readonly filesRemoved: number;
  readonly objectsRemoved: number;
  readonly bytesFreed: number;
  /** Files that stay because forks hold them. */
  readonly filesPinned: number;
  /** Removals that the store refused; the next clean-up tries again. */
  readonly failed: number;
}

/** What an operation is at, as its workflow and the job show it. */
export interface OperationStatus {
  readonly operation: string;
  readonly kind: OperationKind;
  readonly phase: string;
  /** One sentence. */
  readonly details: string;
}

/** From a job to the checkpoint loop of its attempt: a round with consequences. */
export interface RoundOrder {
  readonly operation: string;
  /** The attempt ends with the round. */
  readonly stop: boolean;
  /** Null: not a savepoint; empty: one with the default name. */
  readonly savepoint: string | null;
}

/** From the checkpoint loop to the job. */
export interface RoundReply {
  readonly operation: string;
  readonly generation: number;
  readonly checkpoint: number;
  readonly path: string | null;
  /** When the round began, epoch milliseconds. */
  readonly startedMs: number;
  readonly failure: string | null;
}

/** From `attempt` to its `job`, when it was asked to look: every slot is open. */
export interface AttemptRunning {
  readonly generation: number;
  /** When the first record was seen, or, without one for a second, when every slot was open; epoch milliseconds. */
  readonly atMs: number;
}

/** The Temporal Schedule that cleans up after a job. */
export function scheduleId(id: string): string {
  return `${id}-ttl-cleanup`;
}

export const operationSignals = {
  /** To the checkpoint loop. */
  orderRound: 'orderRound',
  /** From the checkpoint loop to the job. */
  roundDone: 'roundDone',
  /** From `attempt` to its `job`. */
  attemptRunning: 'attemptRunning',
  /** From the job to an operation's workflow. */
  operationProgress: 'operationProgress',
} as const;
