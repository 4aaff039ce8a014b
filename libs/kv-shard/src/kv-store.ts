/**
 * Shards on an embedded database: the state store `kv`. A table is one subtask's key groups of one operator, each key group a
 * shard, all of them in one database, told apart by the first two bytes of their keys (why not a database for each shard:
 * docs/decisions). Its home is this machine's disk. A snapshot of a table is a set of links to immutable files with the id
 * of the checkpoint; a restore is a set of links again, at any parallelism: a database may hold more key groups than its
 * table, and a table may have several databases, so that no state is ever moved.
 */
import { type Clock, MillraceError, type Random, type Timer } from '@millrace/kernel';
import {
  type Claim,
  Generations,
  type RetainedSnapshots,
  type SnapshotHandle,
  type StateStore,
  type StateTable,
  type TableSpec,
} from '@millrace/state';
import type { Telemetry, TraceContext } from '@millrace/telemetry';
import type { Engine } from './engine/engine.ts';
import { Home } from './home.ts';
import { KvTable } from './kv-table.ts';
import { type Part, type PartSource, planParts } from './parts.ts';

export interface KvStoreOptions {
  /** Lies on one file system, for links. */
  readonly directory: string;
  readonly engine: Engine;
  /** Entries of each table that are looked at in a second to find those whose time is over. */
  readonly sweepEntriesPerSecond: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
}

const sweepIntervalMs = 250;

export async function openKvStore(options: KvStoreOptions): Promise<StateStore> {
  return new KvStore(options, await Home.open(options.directory, options.random));
}

class KvStore implements StateStore {
  readonly name = 'kv';
  readonly retained: RetainedSnapshots;
  readonly #options: KvStoreOptions;
  readonly #home: Home;
  readonly #generations = new Generations();
  readonly #tables = new Set<KvTable>();
  readonly #purged: { add(value: number): void };
  readonly #unobserve: () => void;
  #timer: Timer;
  #sweeping: Promise<void> = Promise.resolve();
  #closing: Promise<void> | undefined;

  constructor(options: KvStoreOptions, home: Home) {
    this.#options = options;
    this.#home = home;
    this.retained = {
      jobs: () => home.jobs(),
      list: (job) => home.snapshots(job),
      release: (job, snapshot) => home.removeSnapshot(job, snapshot),
    };
    const { metrics } = options.telemetry;
    this.#purged = metrics.counter('millrace_kv_purged_total', 'Expired entries removed by the sweep');
    this.#unobserve = metrics.gauge('millrace_kv_tables', 'Tables open on shards of this process', () => {
      return this.#tables.size;
    });
    this.#timer = this.#schedule();
  }

  async openTable(spec: TableSpec, restore: readonly SnapshotHandle[], parent?: TraceContext): Promise<StateTable> {
    this.#checkOpen();
    const claim = await this.#claim(spec);
    const attributes = { 'millrace.operator': spec.operator, 'millrace.handles': restore.length };
    const { tracer } = this.#options.telemetry;
    return tracer.span('state.restore', { parent, attributes }, () => this.#open(spec, restore, claim));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Before anything is opened: whoever is older is stopped by this, here and after a restart. */
  async #claim(spec: TableSpec): Promise<Claim> {
    const newest = await this.#home.readGeneration(spec.job, spec.operator);
    this.#generations.claim({ ...spec, generation: Math.max(newest, spec.generation) });
    const claim = this.#generations.claim(spec);
    if (spec.generation > newest) await this.#home.writeGeneration(spec.job, spec.operator, spec.generation);
    return claim;
  }

  async #open(spec: TableSpec, restore: readonly SnapshotHandle[], claim: Claim): Promise<StateTable> {
    const sources = restore.length === 0 ? [] : await planParts(spec, restore, this.#home);
    const parts = sources.length === 0 ? [await this.#emptyPart(spec)] : await this.#openParts(sources);
    const discard = async (): Promise<void> => {
      await Promise.all(parts.map((part) => this.#home.removeDatabase(part.directory)));
    };
    const table = new KvTable({
      ...this.#options,
      spec,
      parts,
      entries: sources.reduce((sum, source) => sum + source.entries, 0),
      home: this.#home,
      claim,
      onClose: async () => {
        this.#tables.delete(table);
        await discard();
      },
    });
    this.#tables.add(table);
    try {
      this.#checkOpen();
      claim.check();
    } catch (error) {
      await table.close();
      throw error;
    }
    return table;
  }

  async #emptyPart({ keyGroups }: TableSpec): Promise<Part> {
    const directory = this.#home.nextDatabase();
    return { db: await this.#options.engine.open(directory), directory, keyGroups, holdsMore: false };
  }

  async #openParts(sources: readonly PartSource[]): Promise<Part[]> {
    const opening = sources.map((source) => this.#openPart(source));
    const settled = await Promise.allSettled(opening);
    const failed = settled.find((one) => one.status === 'rejected');
    const parts = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    if (failed === undefined) return parts;
    await Promise.all(parts.map((part) => part.db.close()));
    throw failed.reason;
  }

  async #openPart({ job, snapshot, name, keyGroups, holdsMore }: PartSource): Promise<Part> {
    const { engine } = this.#options;
    const directory = this.#home.nextDatabase();
    await engine.link(this.#home.partDirectory(job, snapshot, name), directory);
    const db = await engine.open(directory);
    return { db, directory, keyGroups, holdsMore };
  }

  #schedule(): Timer {
    return this.#options.clock.schedule(sweepIntervalMs, () => {
      this.#sweeping = this.#sweep().finally(() => {
        if (this.#closing === undefined) this.#timer = this.#schedule();
      });
    });
  }

  async #sweep(): Promise<void> {
    const entriesMax = Math.ceil((this.#options.sweepEntriesPerSecond * sweepIntervalMs) / 1000);
    for (const table of this.#tables) {
      try {
        this.#purged.add(await table.sweep(entriesMax));
      } catch (error) {
        // The table is closed or broken, and its owner is told so.
        this.#options.telemetry.log.debug('a table was not swept', { error: MillraceError.from(error).message });
      }
    }
  }

  async #close(): Promise<void> {
    this.#timer.cancel();
    this.#unobserve();
    await Promise.all([...this.#tables].map((table) => table.close()));
    await this.#sweeping;
    await this.#home.close();
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw new MillraceError('state-table-closed', 'the state store is closed');
  }
}
