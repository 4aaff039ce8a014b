import { MillraceError } from '@millrace/kernel';
import type { SnapshotHandle, StateStore, StateTable, TableSpec } from '@millrace/state';
import type { TraceContext } from '@millrace/telemetry';

/** A store of one attempt with what lies beneath it. */
export interface OpenedStore {
  readonly store: StateStore;
  close(): Promise<void>;
}

export interface JobStoresOptions {
  readonly name: string;
  /** Opens the store of one attempt of a job. */
  readonly open: (job: string, generation: number) => Promise<OpenedStore>;
}

interface Held {
  readonly opening: Promise<OpenedStore>;
  /** Who uses it; the last to leave closes it. */
  readonly tables: Set<object>;
}

/** One store out of many: each attempt of each job has its own, open as long as one of its tables is. */
export class JobStores implements StateStore {
  readonly name: string;
  readonly #open: JobStoresOptions['open'];
  readonly #held = new Map<string, Held>();
  readonly #tables = new Set<StateTable>();
  #closing: Promise<void> | undefined;

  constructor(options: JobStoresOptions) {
    this.name = options.name;
    this.#open = options.open;
  }

  async openTable(spec: TableSpec, restore: readonly SnapshotHandle[], parent?: TraceContext): Promise<StateTable> {
    if (this.#closing !== undefined) throw new MillraceError('state-table-closed', 'the state store is closed');
    const key = JSON.stringify([spec.job, spec.generation]);
    const held = this.#held.get(key) ?? { opening: this.#open(spec.job, spec.generation), tables: new Set() };
    this.#held.set(key, held);
    const use = {};
    held.tables.add(use);
    try {
      const { store } = await held.opening;
      const table = await store.openTable(spec, restore, parent);
      const leased = closingWith(table, async () => {
        await this.#release(key, held, use);
        this.#tables.delete(leased);
      });
      this.#tables.add(leased);
      if (this.#closing !== undefined) await leased.close();
      return leased;
    } catch (error) {
      await this.#release(key, held, use);
      throw error;
    }
  }

  close(): Promise<void> {
    this.#closing ??= Promise.all([...this.#tables].map((table) => table.close())).then(() => undefined);
    return this.#closing;
  }

  async #release(key: string, held: Held, use: object): Promise<void> {
    if (!held.tables.delete(use) || held.tables.size > 0) return;
    if (this.#held.get(key) === held) this.#held.delete(key);
    const opened = await held.opening.catch(() => undefined); // its failure was told to who asked
    await opened?.close();
  }
}

/** The table, with something to do after its first close. */
function closingWith(table: StateTable, after: () => Promise<void>): StateTable {
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    try {
      await table.close();
    } finally {
      await after();
    }
  };
  return {
    spec: table.spec,
    peek: (...all) => table.peek(...all),
    multiGet: (keys, parent) => table.multiGet(keys, parent),
    write: (batch) => table.write(batch),
    scan: (range, parent) => table.scan(range, parent),
    snapshot: (checkpoint, parent) => table.snapshot(checkpoint, parent),
    stats: () => table.stats(),
    close: () => (closing ??= close()),
  };
}
