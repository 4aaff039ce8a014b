import type { Clock, MaybePromise, Random } from '@millrace/kernel';
import type { Telemetry } from '@millrace/telemetry';
import type { StateStore } from './store.ts';

/**
 * The door for backends: a module that exports a function `createStateBackend` of type {@link CreateStateBackend}. The
 * state-service loads it by name (`--backend <package or ./file>`, `millrace run --state <package or ./file>`) and
 * serves the store that it makes over gRPC; clients, streams, limits, transport security and retention of snapshots are the
 * service's part. `stateStoreConformance` of `@millrace/state/testing` is what the store has to pass.
 */
export interface StateBackendContext {
  /** A directory of this backend's own on the disk of the service's machine. It exists and outlives the process. */
  readonly directory: string;
  /** What `--backend-options` (JSON) says; the backend checks it and throws `bad-setting` for what it cannot use. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
}

/** Makes the one store of a state-service process. The service closes it when it stops. */
export type CreateStateBackend = (context: StateBackendContext) => MaybePromise<StateStore>;

/**
 * For stores that keep their snapshots themselves (handles without holders): how they are told that one is needed no more.
 * The service calls it once nothing durable refers to a snapshot: no checkpoint, savepoint or fork, whatever the job.
 */
export interface RetainedSnapshots {
  /** Jobs that have snapshots here. */
  jobs(): MaybePromise<readonly string[]>;
  /** Ids of the job's snapshots that exist now. The handle of each says `data.job` and `data.snapshot`. */
  list(job: string): MaybePromise<readonly string[]>;
  /** Forgets a snapshot; one that is gone already is fine. Tables restored from it go on. */
  release(job: string, snapshot: string): MaybePromise<void>;
}
