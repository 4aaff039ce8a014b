import type { SnapshotHandle, StateStore, StateTable, TableSpec } from '@millrace/state';

export interface GatedStore extends StateStore {
  /** Calls so far, in order. */
  readonly calls: string[];
  /** Tables open now. */
  readonly open: number;
  /** From now on the named calls wait … */
  hold(...names: readonly ('write' | 'multiGet' | 'snapshot' | 'open')[]): void;
  /** … until this: then they resolve, or fail. */
  release(error?: Error): void;
}

/** A store whose answers a test holds back. What is read or written is what the store beneath does, at the call. */
export function gatedStore(store: StateStore): GatedStore {
  const calls: string[] = [];
  const held = new Set<string>();
  let gate = Promise.withResolvers<void>();
  let open = 0;
  const pass = <T>(name: string, value: T): T | Promise<Awaited<T>> => {
    calls.push(name);
    if (!held.has(name)) return value;
    return Promise.all([gate.promise, value]).then(([, result]) => result);
  };
  const gated = (table: StateTable): StateTable => ({
    spec: table.spec,
    peek: (...all) => table.peek(...all),
    multiGet: (keys) => pass('multiGet', table.multiGet(keys)),
    write: (batch) => pass('write', table.write(batch)),
    scan: (range) => table.scan(range),
    snapshot: async (checkpoint) => pass('snapshot', table.snapshot(checkpoint)),
    stats: () => table.stats(),
    close: async () => {
      open--;
      await table.close();
    },
  });
  return {
    name: store.name,
    calls,
    get open() {
      return open;
    },
    hold: (...names) => {
      for (const name of names) held.add(name);
    },
    release: (error) => {
      held.clear();
      if (error === undefined) gate.resolve();
      else gate.reject(error);
      gate.promise.catch(() => undefined);
      gate = Promise.withResolvers();
    },
    openTable: async (spec: TableSpec, restore: readonly SnapshotHandle[]) => {
      await pass('open', undefined);
      const table = gated(await store.openTable(spec, restore));
      open++;
      return table;
    },
    close: () => store.close(),
  };
}
