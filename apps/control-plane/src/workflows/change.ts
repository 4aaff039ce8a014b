import type { OperationStatus, RescaleResult, StopMode, StopResult } from '@millrace/proto/control';
import type { HeldSlot } from './claim-slots.ts';
import type { Cause } from './failures.ts';

interface Common {
  readonly operation: string;
  /** Workflow that is told of progress. */
  readonly reply: string | undefined;
  details: string;
}

/**
 * `claiming`: free slots are claimed while the old attempt runs · `stopping`: it ends, with a checkpoint when it can ·
 * `deploying`: the new attempt comes up · `rolling-back`: it did not, the old parallelism comes up again.
 */
export interface RescaleChange extends Common {
  readonly kind: 'rescale';
  readonly from: number;
  readonly to: number;
  readonly timeoutMs: number;
  phase: 'claiming' | 'stopping' | 'deploying' | 'rolling-back';
  /** Claimed beforehand. */
  held: readonly HeldSlot[];
  checkpoint: number | null;
  /** When the last round of the old attempt began. */
  stoppedAtMs: number | null;
  /** Attempts at the new parallelism that were lost to what says nothing of it. */
  losses: number;
  /** Why it is rolled back. */
  reason: Cause | undefined;
  outcome: { readonly result: RescaleResult } | { readonly cause: Cause } | undefined;
}

export interface StopChange extends Common {
  readonly kind: 'stop';
  readonly mode: StopMode;
  readonly savepoint: string | undefined;
  phase: 'stopping' | 'draining';
  outcome: { readonly result: StopResult } | { readonly cause: Cause } | undefined;
}

/** What is being done to the attempt of a job: one thing at a time. */
export type Change = RescaleChange | StopChange;

export function changeStatus(change: Change): OperationStatus {
  const { operation, kind, phase, details } = change;
  return { operation, kind, phase, details };
}

/** Failures of a new attempt that say nothing of the new parallelism: it is tried again. */
const losses = new Set(['lease-lapsed', 'runner-stopped', 'runner-lost', 'exchange-broken', 'channel-broken']);
const lossesMax = 3;

/** Whether the failure of an attempt at the new parallelism is to be followed by another one. */
export function isWorthAnother(change: RescaleChange, cause: Cause): boolean {
  return losses.has(cause.code) && change.losses < lossesMax;
}

export function rolledBack(change: RescaleChange, cause: Cause): Cause {
  const message = `The attempt at parallelism ${change.to} did not come up; the job goes on at ${change.from}. Reason: ${cause.message} (${cause.code})`;
  return { code: 'rescale-rolled-back', kind: 'retry', message, details: { from: change.from, to: change.to } };
}
