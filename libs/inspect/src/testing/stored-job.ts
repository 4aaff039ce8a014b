import { MemoryDfs } from '@millrace/dfs';
import {
  ByteWriter,
  containsKeyGroup,
  type KeyGroupRange,
  keyGroupOf,
  keyGroupRange,
  SeededRandom,
} from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import { defaultLsmLimits, inlineExecutor, type LsmLimits } from '@millrace/lsm';
import type { CheckpointEntry, JobRecord } from '@millrace/proto/control';
import {
  int64,
  json,
  keyCodec,
  keyOf,
  map,
  openKeyedState,
  reducing,
  type SnapshotHandle,
  string,
  struct,
  value,
  WorkingSet,
} from '@millrace/state';
import { openLsmStore } from '@millrace/state-lsm';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import { FencedObject, forkCheckpoint, JobNamespace, openJobStorage } from '@millrace/ufs';
import { holdersOf } from '../checkpoint-parts.ts';
import { StoredJobs } from '../stored-jobs.ts';

const maxParallelism = 128;
/** So small that a few hundred keys make several files. */
const limits: LsmLimits = {
  ...defaultLsmLimits,
  memtableBytes: 16 * 1024,
  tables: { ...defaultLsmLimits.tables, blockBytes: 512, tableBytesMax: 4096 },
};

const shape = {
  orders: reducing(int64, (a: number, b: number) => a + b),
  last: value(struct({ at: int64, city: string })),
  byItem: map(keyOf<string>(), json<{ count: number }>()),
};

/** A job as runners and the control plane leave it on a file system, without either: two subtasks that count orders. */
export class StoredJob {
  readonly clock = new ManualClock(1_700_000_000_000);
  readonly dfs = new MemoryDfs(this.clock);
  readonly jobs = new StoredJobs({ dfs: this.dfs, clock: this.clock, random: new SeededRandom(7) });
  readonly namespace = new JobNamespace('shop');
  readonly #random = new SeededRandom(5);
  #handles: readonly SnapshotHandle[] = [];
  #round = 0;

  /** Adds an order of each customer in `[from, to)` and registers a checkpoint, of which the newest two are retained. */
  async checkpoint(from: number, to: number): Promise<CheckpointEntry> {
    const checkpoint = ++this.#round;
    const handles = await Promise.all([0, 1].map((subtask) => this.#work(subtask, checkpoint, from, to)));
    this.#handles = handles;
    const path = this.namespace.checkpointPath(checkpoint, 1);
    const slots = handles.map((table, subtask) => ({
      checkpoint,
      subtask,
      operators: [
        { operator: 'source', subtask, list: [subtask] },
        { operator: 'counts', subtask, table },
      ],
    }));
    const contents = { version: 1, id: 'shop', checkpoint, generation: 1, parallelism: 2, maxParallelism, slots };
    await this.dfs.put(path, new TextEncoder().encode(JSON.stringify(contents)));
    const entry = {
      checkpoint,
      generation: 1,
      path,
      parallelism: 2,
      createdMs: this.clock.nowMs(),
      bytesPut: handles.reduce((sum, handle) => sum + handle.bytesPut, 0),
      bytesLinked: handles.reduce((sum, handle) => sum + handle.bytesLinked, 0),
      last: false,
    };
    await this.update((record) => ({ ...record, round: checkpoint, checkpoints: [...record.checkpoints, entry] }));
    return entry;
  }

  /** Forks the newest checkpoint as another job. Resolves to the fork's holders. */
  async fork(child: string): Promise<readonly string[]> {
    const record = await this.jobs.record('shop');
    const entry = this.jobs.checkpoint(record);
    const contents = await this.jobs.contents(entry);
    const holders = holdersOf(contents).map(({ path }) => path);
    const request = { parent: 'shop', child, claim: `claim of ${child}`, holders, generation: 1 };
    const fork = await forkCheckpoint(this.dfs, { liveHolders: async () => holders }, request);
    const path = new JobNamespace(child).checkpointPath(entry.checkpoint, 1);
    await this.dfs.put(path, new TextEncoder().encode(JSON.stringify(fork.relocate({ ...contents, id: child }))));
    await this.update((now) => ({ ...now, id: child, base: { ...entry, path } }), child);
    return fork.holders;
  }

  /** The next checkpoint begins with nothing. */
  forget(): void {
    this.#handles = [];
  }

  async update(change: (record: JobRecord) => JobRecord, job = 'shop'): Promise<JobRecord> {
    const { dfs, clock } = this;
    const directory = new JobNamespace(job).recordDirectory;
    const record = new FencedObject<JobRecord>({ dfs, clock, random: this.#random, directory });
    return (await record.update((current) => change(current ?? emptyRecord), { generation: 1 })).value;
  }

  async #work(subtask: number, checkpoint: number, from: number, to: number): Promise<SnapshotHandle> {
    const { clock, dfs } = this;
    const random = this.#random;
    const storage = openJobStorage({ dfs, jobId: 'shop', generation: 1, clock, random, telemetry });
    const store = openLsmStore({
      ...storage,
      executor: inlineExecutor(storage.files),
      cacheBytes: 1 << 20,
      limits,
      clock,
      telemetry,
    });
    const keyGroups = keyGroupRange(subtask, 2, maxParallelism);
    const spec = { job: 'shop', operator: 'counts', subtask, keyGroups, maxParallelism, generation: 1 };
    const table = await store.openTable(spec, this.#handles);
    const workingSet = new WorkingSet({ bytesMax: 1 << 20, clock });
    const restored = this.#handles.length > 0;
    const state = await openKeyedState({ table, restored, shape, workingSet, clock });
    for (let i = from; i < to; i++) {
      const key = `c${i}`;
      if (!owns(keyGroups, key)) continue;
      const entry = state.enter(key);
      const facade = state.facade(entry, { open: true, enter: () => undefined, leave: () => undefined });
      await facade.orders.add(i);
      facade.last.set({ at: checkpoint, city: `city ${i % 5}` });
      facade.byItem.set(`item ${i % 3}`, { count: checkpoint });
      state.leave(entry);
    }
    const handle = await state.snapshot(checkpoint);
    await state.close();
    await store.close();
    return handle;
  }
}

function owns(keyGroups: KeyGroupRange, key: string): boolean {
  const writer = new ByteWriter(16);
  keyCodec.encode(key, writer);
  return containsKeyGroup(keyGroups, keyGroupOf(writer.bytes, 0, writer.position, maxParallelism));
}

const emptyRecord: JobRecord = {
  id: 'shop',
  job: 'shop',
  generation: 1,
  round: 0,
  checkpoints: [],
  maxParallelism,
  finished: false,
  run: 'run',
  runStart: 0,
  closedRound: 0,
  dropping: [],
};
