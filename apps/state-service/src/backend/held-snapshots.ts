/**
 * How snapshots that a store keeps itself come under the job's retention. Each gets a file of the job on the distributed file
 * system, a few hundred bytes that name it, and a holder that names the file, as every table's snapshot has: checkpoints,
 * savepoints and forks hold it, and the reaper removes it when the last of them lets go, all without knowing what it is. A
 * snapshot whose file is gone is released (`snapshot-sweep.ts`).
 *
 * Crash order: the snapshot, its file, its holder, then the handle is given out. A crash in between leaves a snapshot
 * without a file, or a file without a live holder; nobody has a handle of either, and both are swept.
 */
import type { SnapshotHandle, StateStore, StateTable, TableSpec } from '@millrace/state';
import type { TraceContext } from '@millrace/telemetry';
import type { JobStorage } from '@millrace/ufs';
import { z } from 'zod';

const markSchema = z.object({ snapshotOf: z.string(), store: z.string(), snapshot: z.string() });

/** What a snapshot's file says. */
export type SnapshotMark = z.output<typeof markSchema>;

/** Longer files are no marks. */
export const markBytesMax = 4096;

export function parseMark(bytes: Uint8Array): SnapshotMark | undefined {
  try {
    return markSchema.safeParse(JSON.parse(Buffer.from(bytes).toString())).data;
  } catch {
    return undefined;
  }
}

export interface HeldSnapshotsOptions {
  readonly store: StateStore;
  /** Unique among all state-services: several may hold parts of one table. */
  readonly instance: string;
  readonly openStorage: (job: string, generation: number) => JobStorage;
}

/** Snapshots under way, by job and id: not to be taken for ones that nobody holds. */
export class SnapshotsUnderWay {
  readonly #tables = new Map<object, string>();

  begin(job: string): () => void {
    const token = {};
    this.#tables.set(token, job);
    return () => this.#tables.delete(token);
  }

  /** Whether a snapshot of the job is being taken now. */
  has(job: string): boolean {
    return [...this.#tables.values()].includes(job);
  }
}

/** `store` with a holder for every snapshot that has none. */
export class HeldSnapshots implements StateStore {
  readonly underWay = new SnapshotsUnderWay();
  readonly #options: HeldSnapshotsOptions;

  constructor(options: HeldSnapshotsOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.store.name;
  }

  async openTable(spec: TableSpec, restore: readonly SnapshotHandle[], parent?: TraceContext): Promise<StateTable> {
    const table = await this.#options.store.openTable(spec, restore, parent);
    const storage = this.#options.openStorage(spec.job, spec.generation);
    return {
      spec: table.spec,
      peek: (...all) => table.peek(...all),
      multiGet: (keys, context) => table.multiGet(keys, context),
      write: (batch) => table.write(batch),
      scan: (range, context) => table.scan(range, context),
      snapshot: (checkpoint, context) => this.#snapshot(table, storage, checkpoint, context),
      stats: () => table.stats(),
      close: async () => {
        await table.close();
        await storage.close();
      },
    };
  }

  close(): Promise<void> {
    return this.#options.store.close();
  }

  async #snapshot(
    table: StateTable,
    { files, holders, namespace }: JobStorage,
    checkpoint: number,
    parent: TraceContext | undefined,
  ): Promise<SnapshotHandle> {
    const { spec } = table;
    const done = this.underWay.begin(spec.job);
    try {
      // Called before anything is awaited: the snapshot holds the writes issued before it and no others.
      const handle = await table.snapshot(checkpoint, parent);
      if (handle.holders.length > 0) return handle;
      const mark: SnapshotMark = { snapshotOf: spec.job, store: this.name, snapshot: String(handle.data['snapshot']) };
      const writer = await files.create(parent);
      await writer.append(Buffer.from(JSON.stringify(mark)));
      const file = await writer.seal();
      // A uid has no slash, so no table has this name.
      const operator = `shards/${this.#options.instance}/${spec.operator}`;
      const path = namespace.snapshotPath({ ...spec, operator, checkpoint });
      await holders.put(path, { files: [file], value: mark, generation: spec.generation }, parent);
      return { ...handle, holders: [path] };
    } finally {
      done();
    }
  }
}
