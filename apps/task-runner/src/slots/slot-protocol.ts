import type { MessagePort } from 'node:worker_threads';
import type { ErrorJson } from '@millrace/kernel';
import type { OperatorSnapshot, SlotSettings, SlotSnapshot, SlotStats } from '@millrace/streams';
import type { MetricFamily } from '@millrace/telemetry';
import type { DiskCachePlace } from '../disk-cache/compose.ts';
import type { SlotBudget } from './slot-budget.ts';

/** What a slot's thread is told first. Plain data and ports only. */
export interface SlotDeployment {
  /** Absolute path of the job's module. */
  readonly module: string;
  readonly options: { readonly [name: string]: unknown };
  /** Identity of the job's state. */
  readonly id: string;
  readonly generation: number;
  readonly lineage?: string | undefined;
  readonly subtask: number;
  readonly parallelism: number;
  readonly maxParallelism: number;
  readonly restore: readonly OperatorSnapshot[] | undefined;
  readonly allowDroppedState?: boolean | undefined;
  /** URI of the distributed file system. */
  readonly dfs: string;
  readonly backend: StateBackend;
  /** For the backend `remote`. */
  readonly stateService?: StateServiceAccess | undefined;
  /** The runner's cache of files on the local disk. */
  readonly diskCache?: DiskCachePlace | undefined;
  readonly budget: SlotBudget;
  readonly slot: SlotSettings;
  readonly runnerId: string;
  /** By peer slot. */
  readonly ports: ReadonlyArray<readonly [number, MessagePort]>;
  /** To ask compactors through; without it the slot compacts by itself. */
  readonly compactions?: MessagePort | undefined;
}

/** How slots reach the state-services. */
export interface StateServiceAccess {
  readonly instances: ReadonlyArray<{ readonly name: string; readonly address: string }>;
  /** Certificates of the authorities (PEM) that sign theirs; without it the connection is not encrypted. */
  readonly tlsCa?: Uint8Array | undefined;
  readonly token?: string | undefined;
}

export const stateBackends = ['lsm', 'memory', 'remote'] as const;
export type StateBackend = (typeof stateBackends)[number];

/** From the main thread to a slot. `id` names the answer. */
export type SlotRequest =
  /** The first message, and the only one of its kind. */
  | { readonly kind: 'deploy'; readonly deployment: SlotDeployment }
  | {
      readonly kind: 'checkpoint';
      readonly id: number;
      readonly checkpoint: number;
      readonly parent?: string | undefined;
      readonly overtakeAfterMs?: number | undefined;
      readonly stop?: boolean | undefined;
    }
  | { readonly kind: 'complete'; readonly id: number; readonly checkpoint: number; readonly last: boolean }
  | { readonly kind: 'end-inputs' }
  | { readonly kind: 'abort'; readonly checkpoint: number }
  | { readonly kind: 'cancel'; readonly error: ErrorJson };

/** From a slot to the main thread. */
export type SlotReport =
  /** Restored, connected and running. */
  | { readonly kind: 'opened' }
  | { readonly kind: 'snapshot'; readonly id: number; readonly snapshot: SlotSnapshot }
  | { readonly kind: 'completed'; readonly id: number }
  | { readonly kind: 'refused'; readonly id: number; readonly error: ErrorJson }
  | { readonly kind: 'stats'; readonly stats: SlotStats }
  | { readonly kind: 'metrics'; readonly families: readonly MetricFamily[] }
  /** The last message: every source had ended and the last checkpoint is complete. */
  | { readonly kind: 'finished' }
  /** The last message: the slot failed or was cancelled. */
  | { readonly kind: 'failed'; readonly error: ErrorJson };
