import type { Operator } from '../runtime/operator.ts';

/** Where records go. A sink is a description; `create` makes the operator of one subtask. */
export interface Sink<T> {
  /** What the console shows: `json-lines`, `console`, … */
  readonly kind: string;
  /** Does it keep operator state (transactions)? */
  readonly stateful: boolean;
  /** A resource that no second sink of a job may use, such as a directory. */
  readonly exclusive?: string | undefined;
  /** Fixes the type of the records; never read. */
  readonly accepts?: (record: T) => void;
  create(): Operator;
}
