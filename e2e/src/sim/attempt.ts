import type { FaultyDfs } from '@millrace/dfs/testing';
import { isKind, sleep } from '@millrace/kernel';
import { defaultLsmLimits, inlineExecutor, type LsmLimits } from '@millrace/lsm';
import type { SnapshotHandle, StateStore, StateTable } from '@millrace/state';
import { openLsmStore } from '@millrace/state-lsm';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import { type JobStorage, openJobStorage, retire } from '@millrace/ufs';
import {
  type Balances,
  differences,
  maxParallelism,
  openingBalances,
  rangesOf,
  readBalances,
  sumOf,
  totalBalance,
  transfer,
  writeBalances,
} from './bank.ts';
import { emptyRecord, recordOf, type SimCheckpoint, type SimContents, type SimRecord } from './sim-record.ts';
import type { World } from './world.ts';

/** Every snapshot is a run of its own, and two of them are merged: compactions are always under way. */
const limits: LsmLimits = {
  ...defaultLsmLimits,
  memtableBytes: 16 * 1024,
  pageBytes: 256,
  tables: { ...defaultLsmLimits.tables, blockBytes: 64, tableBytesMax: 256 },
  compaction: { ...defaultLsmLimits.compaction, l0Runs: 2, levelBytes: 1024, levelFactor: 2, levelsMax: 3 },
};

/** Checkpoints that a job keeps. */
const retained = 2;

/**
 * One attempt of a job whose state is a bank, on the real embedded store: it restores, transfers money, takes
 * checkpoints, drops old ones, and goes on after a newer attempt has taken over until it notices. Whatever it reads is
 * compared with what it must be.
 */
export class Attempt {
  readonly dfs: FaultyDfs;
  readonly job: string;
  generation = 0;
  readonly #world: World;
  #storage: JobStorage | undefined;
  #store: StateStore | undefined;
  #tables: StateTable[] = [];
  #balances = openingBalances();
  #round = 0;
  #over = false;

  constructor(world: World, job: string, dfs: FaultyDfs = world.connect()) {
    this.#world = world;
    this.job = job;
    this.dfs = dfs;
  }

  stop(): void {
    this.#over = true;
  }

  /** Takes the job over and restores its newest checkpoint. */
  async start(parallelism: number): Promise<void> {
    const { clock, random } = this.#world;
    const claimant = random.hex(8);
    const change = (current: SimRecord | undefined): SimRecord => current ?? { ...emptyRecord, claim: claimant };
    const { value } = await this.persist(() => this.#record.claim({ claimant, change }));
    this.generation = value.generation;
    this.#round = value.round;
    if (value.deleted) return this.stop();
    const { dfs, job, generation } = this;
    const storage = openJobStorage({ dfs, jobId: job, generation, clock, random, telemetry });
    const executor = inlineExecutor(storage.files);
    const store = openLsmStore({
      ...storage,
      executor,
      cacheBytes: 0,
      limits,
      clock,
      telemetry,
      closeTimeoutMs: 100_000,
    });
    this.#storage = storage;
    this.#store = store;
    const from = value.checkpoints.at(-1);
    const handles = from === undefined ? [] : (await this.#contents(from)).handles;
    for (const [subtask, keyGroups] of rangesOf(parallelism).entries()) {
      const spec = { job, operator: 'bank', subtask, keyGroups, maxParallelism, generation };
      this.#tables.push(await this.persist(() => store.openTable(spec, handles)));
    }
    if (from === undefined) return this.#write(openingBalances().keys());
    this.#balances = new Map(this.#world.expected.get(from.path));
    await this.check(`restored from ${from.path}`);
  }

  /** Runs until it is stopped, crashed or fenced. Rejects only for what must never happen. */
  async run(): Promise<void> {
    const { random, clock, tally } = this.#world;
    try {
      await this.start(1 + random.below(3));
      let round: Promise<unknown> | undefined;
      while (!this.#over && !this.dfs.crashed) {
        this.work();
        if (round === undefined && random.float() < 0.4) {
          const begun = this.round().finally(() => {
            round = undefined;
          });
          begun.catch(() => this.stop());
          round = begun;
        }
        await sleep(clock, random.below(16));
      }
      await round;
      if (!this.dfs.crashed && this.#store !== undefined) await this.check('at the end');
    } catch (error) {
      const newest = this.#world.store.record(this.job);
      if (this.dfs.crashed) tally.crashed++;
      else if (isKind(error, 'fenced')) tally.fenced++;
      // A zombie may find its files gone; nobody else may.
      else if (newest === undefined || (newest.generation <= this.generation && !newest.deleted)) throw error;
    } finally {
      await this.close();
    }
  }

  /** Some transfers, as one step: whatever is snapshot has all of it or nothing. */
  work(): void {
    this.#write(transfer(this.#balances, this.#world.random, 1 + this.#world.random.below(4)));
  }

  /** Compares what the tables say with what was written; a newer attempt may have taken the files of an older one. */
  async check(when: string): Promise<void> {
    const expected = new Map(this.#balances);
    const found = await this.persist(() => readBalances(this.#tables));
    this.#compare(found, expected, when);
  }

  /** Takes a checkpoint; a failure of kind `retry` aborts the round without trace. */
  async round(): Promise<boolean> {
    const { tally } = this.#world;
    try {
      await this.#register(await this.#snapshot(++this.#round));
      tally.registered++;
      return true;
    } catch (error) {
      if (!isKind(error, 'retry')) throw error;
      tally.aborted++;
      return false;
    }
  }

  async close(): Promise<void> {
    await this.#store?.close().catch(() => undefined);
    await this.#storage?.close();
  }

  /** Repeats what fails with kind `retry`; gives up with the process. */
  async persist<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!isKind(error, 'retry') || this.dfs.crashed) throw error;
      }
    }
  }

  get #record() {
    return recordOf({ ...this.#world, dfs: this.dfs }, this.job);
  }

  #write(touched: Iterable<number>): void {
    writeBalances(this.#tables, this.#balances, touched);
  }

  async #contents({ path }: SimCheckpoint): Promise<SimContents> {
    const bytes = await this.persist(() => this.dfs.readAll(path));
    return JSON.parse(new TextDecoder().decode(bytes)) as SimContents;
  }

  /** The part before the first wait is the barrier: all tables and the expected balances as of one moment. */
  async #snapshot(checkpoint: number): Promise<SimCheckpoint> {
    const { generation } = this;
    const path = (this.#storage as JobStorage).namespace.checkpointPath(checkpoint, generation);
    const snapshots = this.#tables.map((table) => table.snapshot(checkpoint));
    this.#world.expected.set(path, new Map(this.#balances));
    const settled = await Promise.allSettled(snapshots);
    const handles: SnapshotHandle[] = [];
    for (const one of settled) {
      if (one.status === 'rejected') throw one.reason;
      handles.push(one.value);
    }
    const contents: SimContents = { handles };
    await this.dfs.putIfAbsent(path, new TextEncoder().encode(JSON.stringify(contents)));
    return { checkpoint, generation, path, holders: handles.flatMap(({ holders }) => holders) };
  }

  async #register(entry: SimCheckpoint): Promise<void> {
    const { generation } = this;
    let before: readonly SimCheckpoint[] = [];
    const change = (current: SimRecord | undefined): SimRecord => {
      const record = current as SimRecord;
      before = record.checkpoints;
      if (before.some(({ path }) => path === entry.path)) return record;
      return { ...record, round: entry.checkpoint, checkpoints: [...before, entry].slice(-retained) };
    };
    const { value } = await this.#record.update(change, { generation });
    const kept = new Set(value.checkpoints.map(({ path }) => path));
    const dropped = before.filter(({ path }) => !kept.has(path));
    const live = value.checkpoints.flatMap(({ holders }) => holders);
    if (dropped.length === 0) return;
    const request = {
      dropped: dropped.flatMap(({ holders }) => holders),
      objects: dropped.map(({ path }) => path),
      live,
    };
    const { reaper } = this.#storage as JobStorage;
    // A failure here is no failure of the round: the sweep comes.
    await retire(this.#storage as JobStorage, reaper, request).catch((error: unknown) => {
      if (!isKind(error, 'retry') && !isKind(error, 'setup')) throw error;
    });
  }

  #compare(found: Balances, expected: Balances, when: string): void {
    const { store, tally } = this.#world;
    tally.checked++;
    const wrong = differences(found, expected);
    if (sumOf(found) !== totalBalance) wrong.push(`the sum is ${sumOf(found)}, not ${totalBalance}`);
    for (const one of wrong.slice(0, 3))
      store.violations.push(`${this.job} generation ${this.generation} ${when}: ${one}`);
  }
}
