import type { Clock, KeyGroupRange, Random } from '@millrace/kernel';
import type { SnapshotHandle, StateStore } from '@millrace/state';
import type { Telemetry, TraceContext } from '@millrace/telemetry';
import type { InFlight, InFlightFiles } from './in-flight.ts';
import type { StoredWatermark } from './operator.ts';
import type { SlotTransport } from './transport.ts';

/** A barrier as the control plane asks for it and as it travels in the channels. */
export interface Barrier {
  /** The number of the round; grows by at least one with each. */
  readonly checkpoint: number;
  readonly parent?: TraceContext | undefined;
  /**
   * How long it may wait behind other elements, in milliseconds from when a task first hears of it, before it overtakes
   * them: absent = for ever (an aligned checkpoint), 0 = it never waits (unaligned).
   */
  readonly overtakeAfterMs?: number | undefined;
  /** The attempt ends with this checkpoint: no source reads on behind the barrier, unless the round is aborted. */
  readonly stop?: boolean | undefined;
}

/** What one subtask of one operator contributes to a checkpoint. Plain JSON, small. */
export interface OperatorSnapshot {
  readonly operator: string;
  readonly subtask: number;
  /** Keyed state, when the operator has any. */
  readonly table?: SnapshotHandle;
  /** Operator state: source positions, sink transactions. Redistributed as a list at a restore. */
  readonly list?: readonly unknown[];
  /** Event time of an operator that judges lateness; a restore goes on from the smallest of all subtasks. */
  readonly watermarkMs?: StoredWatermark;
  /** Of the first operator of a chain, when the barrier overtook elements: what was under way around the chain. */
  readonly inFlight?: InFlight;
}

/** The answer of a slot to one barrier: every operator's part, complete and durable. */
export interface SlotSnapshot {
  readonly checkpoint: number;
  readonly subtask: number;
  readonly operators: readonly OperatorSnapshot[];
  /** True when every source of the slot had ended and every input was drained before this barrier. */
  readonly ended: boolean;
  readonly alignMs: number;
  readonly drainMs: number;
  readonly flushMs: number;
  readonly inFlightAtBarrier: number;
  /** Bytes of elements that the barrier overtook, stored with the checkpoint. */
  readonly overtakenBytes: number;
}

/** Live figures of a slot, read by polling. */
export interface SlotStats {
  readonly subtask: number;
  /** Emitted by the sources of the slot. */
  readonly recordsIn: number;
  /** Taken by the sinks of the slot. */
  readonly recordsOut: number;
  /** Smallest current watermark over the operators, epoch milliseconds; null before the first, 8.64e15 for +∞. */
  readonly watermarkMs: number | null;
  readonly inFlight: number;
  readonly buffered: number;
  readonly ended: boolean;
  /** The same by operator, in the order of the chains. */
  readonly operators?: readonly OperatorStats[];
}

/** Live figures of one subtask of one operator. Times are those of its task, which it shares with its chain. */
export interface OperatorStats {
  readonly uid: string;
  readonly recordsIn: number;
  readonly recordsOut: number;
  /** Nothing follows it. */
  readonly isSink: boolean;
  readonly inFlight: number;
  readonly buffered: number;
  readonly watermarkMs: number | null;
  readonly busyMs: number;
  readonly idleMs: number;
  readonly backpressuredMs: number;
}

/** Everything a slot needs; assembled by a composition root. */
export interface SlotContext {
  readonly job: string;
  readonly generation: number;
  /**
   * Names the record of the job in which generations are counted: they are ordered within a lineage, and start again in
   * another (a fresh data directory). Absent: the record is older than lineages.
   */
  readonly lineage?: string | undefined;
  /** This slot runs subtask `subtask` of every operator. */
  readonly subtask: number;
  readonly parallelism: number;
  readonly maxParallelism: number;
  readonly keyGroups: KeyGroupRange;
  readonly settings: SlotSettings;
  readonly store: StateStore;
  readonly transport: SlotTransport;
  /** Where what a barrier overtook is stored when it is large; without it, in the snapshot whatever its size. */
  readonly inFlightFiles?: InFlightFiles | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
  /** The operators' parts of the checkpoint to start from, of all subtasks; undefined for an empty start. */
  readonly restore?: readonly OperatorSnapshot[] | undefined;
  /** Restore also when the checkpoint holds state that the graph has no operator for, or lacks that of one it has. */
  readonly allowDroppedState?: boolean | undefined;
}

export interface SlotSettings {
  /** Records in flight per keyed subtask; 1 is synchronous mode. */
  readonly inFlightLimit: number;
  /** Bytes of state that the slot may hold at hand, over all its operators: some decoded, most as they are stored. */
  readonly workingSetBytes: number;
  /** Bytes for the keys that exist, where the store is far away: none for those that do not is asked. Default 0: no filter. */
  readonly existenceBytes?: number;
  /** Size at which a frame leaves, and how long a partial one may wait. */
  readonly frameBytes: number;
  readonly frameDelayMs: number;
  /** Credit window of one channel in bytes. */
  readonly channelWindowBytes: number;
}

/** One slot of an attempt, as the task-runner drives it. */
export interface Slot {
  /**
   * Opens and restores every operator; resolves when the slot can take records. Rejects with `state-incompatible`,
   * before anything is opened, when graph and checkpoint have other operators with state.
   */
  open(): Promise<void>;
  /** Runs to the end of the job's life here; resolves after `finish`, rejects with the first failure. */
  run(): Promise<void>;
  /**
   * Injects the barrier at this slot's sources; resolves when this slot's part of the checkpoint is durable. Idempotent
   * by number. One round at a time: a newer number aborts an unfinished older round; an aborted or older number
   * rejects with `checkpoint-aborted`.
   */
  checkpoint(barrier: Barrier): Promise<SlotSnapshot>;
  /**
   * The checkpoint is registered, idempotent: sinks commit. With `last` the slot then ends (every source of the job had
   * ended, or had been stopped by the barrier).
   */
  complete(checkpoint: number, last: boolean): Promise<void>;
  /** The sources of this slot read nothing more: what follows is the end of a bounded input. Idempotent. */
  endInputs(): void;
  /** The round failed; what it prepared is forgotten, except what a later round may still hold. */
  abort(checkpoint: number): void;
  stats(): SlotStats;
  /** Stops at once without a checkpoint. Idempotent. */
  cancel(reason: Error): Promise<void>;
}
