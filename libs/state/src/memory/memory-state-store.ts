import { type Clock, containsKeyGroup, MillraceError, systemClock } from '@millrace/kernel';
import { checkCoverage, overlap } from '../coverage.ts';
import type { SnapshotHandle, StateStore, StateTable, TableSpec } from '../store.ts';
import { byteString } from './byte-string.ts';
import { MemoryStateTable } from './memory-state-table.ts';
import { unpackEntries } from './snapshot-data.ts';
import { SortedEntries } from './sorted-entries.ts';

/**
 * State in this process's memory, for unit tests of jobs. A snapshot is a copy that lies in the handle itself, so it can
 * be restored anywhere; its cost follows the size of the state, unlike that of the other stores. Generations are
 * fenced within one store object.
 */
export class MemoryStateStore implements StateStore {
  readonly name = 'memory';
  readonly #clock: Clock;
  /** Newest generation seen, by job and operator. */
  readonly #generations = new Map<string, number>();
  readonly #tables = new Set<StateTable>();
  #closed = false;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  openTable(spec: TableSpec, restore: readonly SnapshotHandle[]): Promise<StateTable> {
    try {
      return Promise.resolve(this.#open(spec, restore));
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#tables].map((table) => table.close()));
    this.#tables.clear();
  }

  #open(spec: TableSpec, restore: readonly SnapshotHandle[]): StateTable {
    if (this.#closed) throw new MillraceError('state-table-closed', 'the state store is closed');
    const name = JSON.stringify([spec.job, spec.operator]);
    const newest = this.#generations.get(name) ?? 0;
    if (spec.generation < newest) {
      throw new MillraceError(
        'state-fenced',
        `generation ${spec.generation} is over: ${newest} has opened ${spec.operator}`,
      );
    }
    const entries = new SortedEntries();
    if (restore.length > 0) {
      checkCoverage(spec, restore);
      for (const handle of restore) this.#load(handle, spec, entries);
    }
    this.#generations.set(name, spec.generation);
    const table = new MemoryStateTable(spec, entries, this.#clock, () => this.#generations.get(name) ?? 0);
    this.#tables.add(table);
    return table;
  }

  #load(handle: SnapshotHandle, spec: TableSpec, into: SortedEntries): void {
    const range = overlap(handle.keyGroups, spec.keyGroups);
    if (range === undefined) return;
    for (const entry of unpackEntries(String(handle.data['entries']))) {
      const keyGroup = ((entry.key[0] ?? 0) << 8) | (entry.key[1] ?? 0);
      if (containsKeyGroup(range, keyGroup)) into.set(byteString(entry.key), entry);
    }
  }
}
