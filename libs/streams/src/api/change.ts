import { type Codec, string, struct } from '@millrace/state';

/**
 * A change of a table that a stream describes. The table is what has been inserted and not retracted; a row may be in
 * it more than once. A row that changes is retracted before its new form is inserted, and a retraction never comes
 * before its insertion; both within the order of one key.
 */
export interface Change<T> {
  readonly op: 'insert' | 'retract';
  readonly value: T;
}

/** How changes are written between threads. */
export function change<T>(value: Codec<T>): Codec<Change<T>> {
  return struct({ op: string, value }) as unknown as Codec<Change<T>>;
}
