import { type Clock, containsKeyGroup, MillraceError } from '@millrace/kernel';
import {
  checkCoverage,
  Generations,
  overlap,
  type RetainedSnapshots,
  type SnapshotHandle,
  type StateStore,
  type StateTable,
  type TableSpec,
} from '@millrace/state';
import { Snapshots } from './snapshots.ts';
import { keyGroupOfStored, TemplateTable } from './table.ts';

/** The one store of a process. */
export class TemplateStore implements StateStore {
  readonly name = 'template';
  readonly retained: RetainedSnapshots;
  readonly #snapshots: Snapshots;
  readonly #clock: Clock;
  /** Fences older attempts within this process. A store with a server behind it keeps the newest generation there. */
  readonly #generations = new Generations();
  readonly #tables = new Set<TemplateTable>();
  #opens = 0;
  #closed = false;

  constructor(directory: string, clock: Clock) {
    this.#clock = clock;
    const snapshots = new Snapshots(directory);
    this.#snapshots = snapshots;
    this.retained = {
      jobs: () => snapshots.jobs(),
      list: (job) => snapshots.list(job),
      release: (job, id) => snapshots.remove(job, id),
    };
  }

  async openTable(spec: TableSpec, restore: readonly SnapshotHandle[]): Promise<StateTable> {
    this.#checkOpen();
    // Refuse first, then fence, then read.
    if (restore.length > 0) checkCoverage(spec, restore);
    const claim = this.#generations.claim(spec);
    const table = new TemplateTable({
      spec,
      claim,
      clock: this.#clock,
      snapshots: this.#snapshots,
      open: this.#opens++,
    });
    for (const handle of restore) await this.#restore(table, handle);
    this.#checkOpen();
    claim.check();
    this.#tables.add(table);
    return table;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#tables].map((table) => table.close()));
  }

  /** The part of a snapshot that the table wants: handles are of any parallelism. */
  async #restore(table: TemplateTable, handle: SnapshotHandle): Promise<void> {
    const wanted = overlap(handle.keyGroups, table.spec.keyGroups);
    if (wanted === undefined) return;
    const { job, snapshot } = handle.data;
    if (handle.store !== this.name || typeof job !== 'string' || typeof snapshot !== 'string') {
      throw new MillraceError('bad-argument', `a snapshot of ${handle.store} cannot be restored by ${this.name}`);
    }
    for (const entry of await this.#snapshots.get(job, snapshot)) {
      if (containsKeyGroup(wanted, keyGroupOfStored(Buffer.from(entry.key, 'base64')))) table.load(entry);
    }
  }

  #checkOpen(): void {
    if (this.#closed) throw new MillraceError('state-table-closed', 'the state store is closed');
  }
}
