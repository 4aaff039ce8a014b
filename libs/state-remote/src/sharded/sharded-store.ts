/**
 * Several state-services as one store. Each serves the key groups that rendezvous hashing gives it, for all tables. A job
 * stays with the instances that its state was first laid on, for shards do not move: an instance that is added serves jobs
 * that begin later; one that is gone is waited for.
 */
import { MillraceError } from '@millrace/kernel';
import type { SnapshotHandle, StateStore, StateTable, TableSpec } from '@millrace/state';
import type { TraceContext } from '@millrace/telemetry';
import { Placement } from './placement.ts';
import { instancesOf, partOf } from './sharded-handle.ts';
import { ShardedTable } from './sharded-table.ts';

/** A store of one state-service; the name stands for it whatever its address. */
export interface NamedStore {
  readonly name: string;
  readonly store: StateStore;
}

export function openShardedStore(stores: readonly NamedStore[]): StateStore {
  return new ShardedStore(stores);
}

class ShardedStore implements StateStore {
  readonly #stores: ReadonlyMap<string, StateStore>;

  constructor(stores: readonly NamedStore[]) {
    this.#stores = new Map(stores.map(({ name, store }) => [name, store]));
    if (this.#stores.size === 0) throw new MillraceError('bad-argument', 'there is no store');
  }

  /** Of the store behind the services, once a table is open. */
  get name(): string {
    return ([...this.#stores.values()][0] as StateStore).name;
  }

  async openTable(spec: TableSpec, restore: readonly SnapshotHandle[], parent?: TraceContext): Promise<StateTable> {
    const known = [...this.#stores.keys()];
    const placement = new Placement(restore.length === 0 ? known : instancesOf(restore, known), spec.maxParallelism);
    const opening = placement.names.map((name) => {
      const parts = restore.map((handle) => partOf(handle, name));
      return (this.#stores.get(name) as StateStore).openTable(spec, parts, parent);
    });
    const settled = await Promise.allSettled(opening);
    const tables = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const failed = settled.find((one) => one.status === 'rejected');
    if (failed === undefined) return new ShardedTable(spec, placement, tables);
    await Promise.all(tables.map((table) => table.close()));
    throw failed.reason;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#stores.values()].map((store) => store.close()));
  }
}
