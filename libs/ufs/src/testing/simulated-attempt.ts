import type { Dfs } from '@millrace/dfs';
import type { FaultyDfs } from '@millrace/dfs/testing';
import { type Clock, isKind, MillraceError, type Random, sleep } from '@millrace/kernel';
import { noTelemetry } from '@millrace/telemetry';
import type { FileRef } from '../file-store.ts';
import { type JobStorage, openJobStorage } from '../job-storage.ts';
import { FencedObject } from '../record/fenced-object.ts';
import { retire } from '../retention/retire.ts';
import type { SimulatedCheckpoint, SimulatedRecord, WatchedStore } from './watched-store.ts';

export interface World {
  readonly jobId: string;
  readonly store: WatchedStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly connect: (store: Dfs) => FaultyDfs;
  readonly tally: Record<'registered' | 'aborted' | 'fenced' | 'compactions' | 'crashed' | 'swept' | 'pins', number>;
}

const operators = ['window', 'join'];
const checkpointsRetained = 2;

interface Table {
  readonly operator: string;
  files: FileRef[];
  /** Whatever a snapshot ever named: not the subtask's to delete. */
  readonly named: Set<string>;
}

/** Repeats what fails with kind `retry`; gives up with the process. */
export async function persist<T>(dfs: FaultyDfs, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isKind(error, 'retry') || dfs.crashed) throw error;
    }
  }
}

/**
 * One attempt of a job with two tables: it flushes and compacts files, takes checkpoints meanwhile, keeps the newest two,
 * and goes on after a newer attempt has taken over until it notices. Reads what it relies on: a missing file fails it.
 */
export class SimulatedAttempt {
  readonly #world: World;
  readonly #dfs: FaultyDfs;
  readonly #record: FencedObject<SimulatedRecord>;
  readonly #tables: Table[] = operators.map((operator) => ({ operator, files: [], named: new Set() }));
  #storage: JobStorage | undefined;
  #retention: JobStorage | undefined;
  #generation = 0;
  #round = 0;
  #over = false;

  constructor(world: World) {
    this.#world = world;
    const { clock, random, store, connect, jobId } = world;
    this.#dfs = connect(store.as('subtask'));
    this.#record = new FencedObject({ dfs: this.#dfs, directory: `${jobId}/record`, clock, random, backoffMs: 4 });
  }

  get generation(): number {
    return this.#generation;
  }

  crash(): void {
    this.#dfs.crash();
  }

  stop(): void {
    this.#over = true;
  }

  heal(): void {
    this.#dfs.heal();
  }

  /** Claims, restores, runs until stopped, crashed or fenced. Rejects only for what must never happen. */
  async run(): Promise<void> {
    try {
      await this.start();
      let round: Promise<void> | undefined;
      while (!this.#over && !this.#dfs.crashed) {
        await this.#step(this.#pick(this.#tables));
        if (round === undefined && this.#world.random.float() < 0.3) {
          round = this.round().finally(() => {
            round = undefined;
          });
          round.catch(() => this.stop());
        }
        await sleep(this.#world.clock, this.#world.random.below(12));
      }
      await round;
    } catch (error) {
      this.#judge(error);
    } finally {
      this.#world.store.tables.delete(this.#generation);
      await this.#storage?.close();
    }
  }

  async start(): Promise<void> {
    const { clock, random, store, jobId, connect } = this.#world;
    const claimant = random.hex(8);
    const empty = (current: SimulatedRecord | undefined): SimulatedRecord =>
      current ?? { generation: 0, round: 0, checkpoints: [] };
    const { value } = await persist(this.#dfs, () => this.#record.claim({ claimant, change: empty }));
    this.#generation = value.generation;
    this.#round = value.round;
    const options = { jobId, generation: value.generation, clock, random, telemetry: noTelemetry };
    this.#storage = openJobStorage({ ...options, dfs: this.#dfs });
    this.#retention = openJobStorage({ ...options, dfs: connect(store.as('retention')) });
    store.tables.set(value.generation, () => this.#tables.flatMap((table) => table.files.map((file) => file.id)));
    for (const path of value.checkpoints.at(-1)?.holders ?? []) await this.#restore(this.#storage, path);
  }

  async #restore(storage: JobStorage, path: string): Promise<void> {
    const holder = await persist(this.#dfs, () => storage.holders.read(path));
    for (const file of holder.files) await persist(this.#dfs, () => storage.files.open(file).read(0, file.sizeBytes));
    const table = this.#tables.find(({ operator }) => operator === holder.value) as Table;
    table.files = [...holder.files];
    for (const file of holder.files) table.named.add(file.id);
  }

  /** One flush or one compaction; what passes is left to the next step. */
  async #step(table: Table): Promise<void> {
    try {
      if (table.files.length < 2 || this.#world.random.float() < 0.5) table.files.push(await this.#write());
      else await this.#compact(table);
    } catch (error) {
      if (!isKind(error, 'retry')) throw error;
    }
  }

  async #write(): Promise<FileRef> {
    const writer = await (this.#storage as JobStorage).files.create();
    try {
      await writer.append(new TextEncoder().encode(writer.id));
      return await writer.seal();
    } catch (error) {
      await writer.abort().catch(() => undefined);
      throw error;
    }
  }

  async #compact(table: Table): Promise<void> {
    const storage = this.#storage as JobStorage;
    const inputs = table.files.slice(0, 1 + this.#world.random.below(3));
    for (const file of inputs) await storage.files.open(file).read(0, file.sizeBytes);
    const output = await this.#write();
    table.files = [...table.files.filter((file) => !inputs.includes(file)), output];
    this.#world.tally.compactions++;
    storage.files.discard(
      inputs.filter((file) => !table.named.has(file.id) && file.id.includes(`-${this.#generation}-`)),
    );
  }

  /** Takes a checkpoint; a failure of kind `retry` aborts the round without trace. */
  async round(): Promise<void> {
    const checkpoint = ++this.#round;
    try {
      const holders: string[] = [];
      for (const table of this.#tables) holders.push(await this.#snapshot(table, checkpoint));
      await this.#register(checkpoint, holders);
      this.#world.tally.registered++;
    } catch (error) {
      if (!isKind(error, 'retry')) throw error;
      this.#world.tally.aborted++;
    }
  }

  async #snapshot(table: Table, checkpoint: number): Promise<string> {
    const { namespace, holders } = this.#storage as JobStorage;
    const { operator } = table;
    // The frozen table: named before the object exists, so that nothing of it is discarded meanwhile.
    const files = [...table.files];
    for (const file of files) table.named.add(file.id);
    if (this.#world.random.float() < 0.1) throw new MillraceError('dfs-unavailable', 'the flush failed');
    const path = namespace.snapshotPath({ checkpoint, operator, subtask: 0, generation: this.#generation });
    await holders.put(path, { files, value: operator, generation: this.#generation });
    return path;
  }

  async #register(checkpoint: number, holders: readonly string[]): Promise<void> {
    const { namespace } = this.#storage as JobStorage;
    const generation = this.#generation;
    const path = namespace.checkpointPath(checkpoint, generation);
    await this.#dfs.putIfAbsent(path, new TextEncoder().encode(JSON.stringify(holders)));
    let before: readonly SimulatedCheckpoint[] = [];
    const { value } = await this.#record.update(
      (current) => {
        const record = current as SimulatedRecord;
        before = record.checkpoints;
        if (record.checkpoints.some((entry) => entry.path === path)) return record;
        const checkpoints = [...record.checkpoints, { checkpoint, generation, path, holders }];
        return { generation, round: checkpoint, checkpoints: checkpoints.slice(-checkpointsRetained) };
      },
      { generation },
    );
    const dropped = before.filter((entry) => !value.checkpoints.some((kept) => kept.path === entry.path));
    if (dropped.length === 0) return;
    // A failure here is no failure of the round.
    await this.#retire(dropped, value.checkpoints).catch((error: unknown) => {
      if (!isKind(error, 'retry') && !isKind(error, 'setup')) throw error;
    });
  }

  async #retire(dropped: readonly SimulatedCheckpoint[], live: readonly SimulatedCheckpoint[]): Promise<void> {
    const storage = this.#retention as JobStorage;
    if (this.#dfs.crashed) return;
    await retire(storage, storage.reaper, {
      dropped: dropped.flatMap((entry) => entry.holders),
      objects: dropped.map((entry) => entry.path),
      live: live.flatMap((entry) => entry.holders),
    });
  }

  #judge(error: unknown): void {
    if (this.#dfs.crashed) {
      this.#world.tally.crashed++;
      return;
    }
    const newest = this.#world.store.record?.generation ?? 0;
    if (isKind(error, 'fenced')) this.#world.tally.fenced++;
    // A zombie may find its files gone; nobody else may.
    else if (newest <= this.#generation) throw error;
  }

  #pick<T>(items: readonly T[]): T {
    return items[this.#world.random.below(items.length)] as T;
  }
}
