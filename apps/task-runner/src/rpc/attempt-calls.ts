import type { CallContext } from '@millrace/proto';
import type { SlotSnapshot, SlotStats } from '@millrace/streams';
import type { PullStream } from '../exchange/index.ts';

export interface BarrierCall {
  readonly checkpoint: number;
  /** The attempt ends with this checkpoint. */
  readonly stop: boolean;
}

/** What the control plane asks of an attempt on this runner: all its slots here. Every call is idempotent. */
export interface AttemptCalls {
  /** Resolves when every slot has injected the barrier; does not wait for the drain. */
  injectBarrier(barrier: BarrierCall, context: CallContext): Promise<void>;
  /** Resolves when every slot's part of the checkpoint is durable. */
  awaitDrain(checkpoint: number, context: CallContext): Promise<readonly SlotSnapshot[]>;
  completeCheckpoint(checkpoint: number, last: boolean, context: CallContext): Promise<void>;
  /** The sources read nothing more. */
  endInputs(context: CallContext): Promise<void>;
  abortCheckpoint(checkpoint: number, context: CallContext): Promise<void>;
  status(context: CallContext): Promise<readonly SlotStats[]>;
}

/** The part of `ExchangeBridge` that the server uses. */
export interface PullTarget {
  accept(puller: string, stream: PullStream): void;
  close(reason?: unknown): Promise<void>;
}

/** An attempt as it is made known to the server. */
export interface HostedAttempt {
  readonly job: string;
  readonly generation: number;
  readonly calls: AttemptCalls;
  readonly exchange: PullTarget;
}
