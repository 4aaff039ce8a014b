import type { TraceContext } from '@millrace/telemetry';
import type { FileDelegation } from '@millrace/ufs';
import type { TableInfoJson } from '../manifest/table-json.ts';
import type { MergeJson } from './merge-json.ts';

export interface MergeRequest {
  readonly merge: MergeJson;
  /** Under which the output is made. */
  readonly output: FileDelegation;
  /** From then on the answer is of no use, milliseconds. */
  readonly timeoutMs: number;
  readonly parent?: TraceContext | undefined;
}

/** Plain JSON. */
export interface MergeAnswer {
  readonly tables: readonly TableInfoJson[];
  /** How many compactors had a go, this one included: what the others left has to be cleaned up. */
  readonly attempts: number;
}

/** Whoever merges for others: near or far, any number of them, none of them trusted to answer. */
export interface MergeService {
  /**
   * Rejects when nobody takes the request within the service's bound (`compaction-unanswered`), and when it fails or
   * takes too long (`compaction-failed`). An aborted request rejects soon; who works on it is told.
   */
  merge(request: MergeRequest, signal: AbortSignal): Promise<MergeAnswer>;
  close(): void;
}
