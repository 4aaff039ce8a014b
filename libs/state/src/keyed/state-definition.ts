import type { ByteWriter, Clock, MillraceError } from '@millrace/kernel';
import type { StateDescriptor } from '../handles/descriptors.ts';
import type { Ttl } from '../handles/ttl.ts';
import type { Entry } from './entry.ts';
import type { EntryKeys } from './entry-keys.ts';
import type { StoredValue } from './stored-value.ts';
import type { TableReader } from './table-reader.ts';
import type { TableWriter } from './table-writer.ts';
import type { WorkingSet } from './working-set.ts';

/** What the cells of one keyed state share. */
export interface CellContext {
  readonly reader: TableReader;
  readonly writer: TableWriter;
  readonly workingSet: WorkingSet;
  readonly clock: Clock;
  readonly keys: EntryKeys;
  /** For building stored keys; its content lives until the next use. */
  readonly scratch: ByteWriter;
  /** Notes a change; `changes` counts what was clean before. */
  markDirty(entry: Entry, bit: number, changes: number): void;
  /** A stored value could not be read: notes it as the failure of the whole state, and returns what to throw. */
  failed(error: unknown): MillraceError;
}

/** A declared state with its place in this table. */
export interface StateDefinition {
  readonly name: string;
  readonly index: number;
  /** Id in stored keys, from the catalog. */
  readonly id: number;
  readonly descriptor: StateDescriptor;
  /** It lies in the key's row. */
  readonly inRow: boolean;
  readonly stored: StoredValue<unknown>;
}

/** When a value written or read now ends; 0 means never. */
export function expiryOf(ttl: Ttl | undefined, clock: Clock): number {
  return ttl === undefined ? 0 : clock.nowMs() + ttl.durationMs;
}
