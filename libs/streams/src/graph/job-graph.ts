import type { Codec } from '@millrace/state';
import type { Operator, SourceOperator } from '../runtime/operator.ts';

/** Which subtask of the next operator gets a record. */
export type Partitioning =
  /** The same subtask; operators joined only by such edges run chained, as plain calls. */
  | { readonly kind: 'forward' }
  /** The owner of the key group of the record's key. */
  | { readonly kind: 'hash'; readonly key: (value: never) => unknown; readonly keyCodec: Codec<never> }
  /** Round robin. */
  | { readonly kind: 'rebalance' }
  /** Every subtask. */
  | { readonly kind: 'broadcast' }
  | CustomPartitioning;

/** The subtask that the job's own function names. */
export interface CustomPartitioning {
  readonly kind: 'custom';
  readonly choose: (value: never, parallelism: number) => number;
}

export interface OperatorNode {
  /** Index in the graph's `operators`. */
  readonly id: number;
  /** Stable name that state is mapped by. */
  readonly uid: string;
  /** What a person reads in the console: `window`, `process`, `files`, … */
  readonly kind: string;
  readonly stateful: boolean;
  readonly isSource: boolean;
  /** A fresh subtask. */
  create(): Operator;
}

export interface Edge {
  /** Index in the graph's `edges`; names the channel of the edge. */
  readonly id: number;
  readonly from: number;
  readonly to: number;
  /** Which input of `to`. */
  readonly input: number;
  /** The side output of `from` that feeds this edge; undefined is the main one. */
  readonly side: string | undefined;
  readonly partitioning: Partitioning;
  /** How records of this edge are written between threads and processes. */
  readonly codec: Codec<never>;
}

/** A job as the runtime sees it: built anew in every slot by running the job's module. */
export interface JobGraph {
  readonly name: string;
  readonly operators: readonly OperatorNode[];
  readonly edges: readonly Edge[];
}

export function isSourceOperator(operator: Operator): operator is SourceOperator {
  return 'poll' in operator;
}
