/**
 * State in Redis: an example of a backend that is not Millrace's own. It keeps the promises of the port in the plainest way:
 * a table's calls go over one connection, so Redis keeps their order; a snapshot copies the shards inside Redis, so its
 * cost follows the size of the state (memory for a moment, no bytes over the network); a restore copies them back.
 * State is as durable as Redis is set to be: `appendonly yes`, and `appendfsync always` for what a checkpoint promises.
 */
import { type Clock, MillraceError } from '@millrace/kernel';
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
import { Connection } from './connection.ts';
import { allKeys, Keys } from './keys.ts';
import { copyShard, type KeptSnapshot, RedisTable } from './redis-table.ts';
import { claimScript } from './scripts.ts';

export interface RedisStoreOptions {
  readonly url: string;
  readonly prefix: string;
  readonly waitingBytesMax: number;
  readonly clock: Clock;
}

/** What `open:<n>` of a table says, for whoever comes after a process that died. */
interface OpenTable {
  readonly generation: number;
  readonly start: number;
  readonly end: number;
}

export class RedisStore implements StateStore {
  readonly name = 'redis';
  readonly retained: RetainedSnapshots;
  readonly #options: RedisStoreOptions;
  readonly #keys: Keys;
  readonly #generations = new Generations();
  readonly #tables = new Set<RedisTable>();
  /** For what belongs to no table; opened again when it broke. */
  #common: Promise<Connection>;
  #closed = false;

  private constructor(options: RedisStoreOptions, common: Connection) {
    this.#options = options;
    this.#keys = new Keys(options.prefix);
    this.#common = Promise.resolve(common);
    this.retained = {
      jobs: async () => texts(await (await this.#connection()).send<Buffer[]>('SMEMBERS', this.#keys.jobs)),
      list: async (job) => texts(await (await this.#connection()).send<Buffer[]>('HKEYS', this.#keys.snapshots(job))),
      release: (job, snapshot) => this.#release(job, snapshot),
    };
  }

  static async open(options: RedisStoreOptions): Promise<RedisStore> {
    return new RedisStore(options, await Connection.open(options.url));
  }

  async openTable(spec: TableSpec, restore: readonly SnapshotHandle[]): Promise<StateTable> {
    this.#checkOpen();
    if (restore.length > 0) checkCoverage(spec, restore);
    const connection = await Connection.open(this.#options.url);
    try {
      return await this.#open(spec, restore, connection);
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await Promise.all([...this.#tables].map((table) => table.close()));
    (await this.#common.catch(() => undefined))?.close();
  }

  async #open(spec: TableSpec, restore: readonly SnapshotHandle[], connection: Connection): Promise<StateTable> {
    const table = this.#keys.table(spec);
    // From here on whoever is older is refused, wherever it runs.
    const open = Number(await connection.send('EVAL', claimScript, 1, table, spec.generation));
    const claim = this.#generations.claim(spec);
    await this.#removeOlder(spec, connection);
    const what: OpenTable = { generation: spec.generation, ...spec.keyGroups };
    await connection.send('HSET', table, `open:${open}`, JSON.stringify(what));
    const entries = await this.#restore(spec, restore, open, connection);
    this.#checkOpen();
    claim.check();
    const opened = new RedisTable({
      ...this.#options,
      spec,
      connection,
      keys: this.#keys,
      open,
      claim,
      entries,
      onClose: async () => {
        this.#tables.delete(opened);
        // Not waited for when Redis is gone: the next generation removes what is left.
        if (connection.isOpen) await this.#removeOpen(spec, open, connection).catch(() => undefined);
        connection.close();
      },
    });
    this.#tables.add(opened);
    return opened;
  }

  /** Copies the shards that the table wants out of the snapshots. Resolves to about how many entries there are. */
  async #restore(
    spec: TableSpec,
    restore: readonly SnapshotHandle[],
    open: number,
    connection: Connection,
  ): Promise<number> {
    const live = this.#keys.live(spec, open);
    const copies: Promise<unknown>[] = [];
    let entries = 0;
    let next = spec.keyGroups.start;
    for (const handle of restore.toSorted((a, b) => a.keyGroups.start - b.keyGroups.start)) {
      const wanted = overlap(handle.keyGroups, { start: next, end: spec.keyGroups.end });
      if (wanted === undefined) continue;
      next = wanted.end + 1;
      const { job, id } = snapshotOf(handle);
      const kept = await this.#readSnapshot(job, id, connection);
      if (kept.maxParallelism !== spec.maxParallelism) throw otherParallelism(spec, kept.maxParallelism);
      entries += kept.entries;
      const from = this.#keys.kept(job, id);
      for (let keyGroup = wanted.start; keyGroup <= wanted.end; keyGroup++) {
        copies.push(...copyShard(connection, from(keyGroup), live(keyGroup)));
      }
    }
    await Promise.all(copies);
    return entries;
  }

  async #readSnapshot(job: string, id: string, connection: Connection): Promise<KeptSnapshot> {
    const text = await connection.send<Buffer | null>('HGET', this.#keys.snapshots(job), id);
    if (text !== null) return JSON.parse(text.toString()) as KeptSnapshot;
    throw new MillraceError('kv-snapshot-missing', `snapshot ${id} of ${job} is not in this Redis`);
  }

  /** Entries of open tables of older generations: their processes are dead or fenced. */
  async #removeOlder(spec: TableSpec, connection: Connection): Promise<void> {
    const fields = texts(await connection.send<Buffer[]>('HGETALL', this.#keys.table(spec)));
    for (let i = 0; i < fields.length; i += 2) {
      const open = /^open:(\d+)$/.exec(fields[i] as string)?.[1];
      if (open === undefined) continue;
      const { generation, start, end } = JSON.parse(fields[i + 1] as string) as OpenTable;
      if (generation < spec.generation) {
        await this.#removeOpen({ ...spec, keyGroups: { start, end } }, Number(open), connection);
      }
    }
  }

  async #removeOpen(spec: TableSpec, open: number, connection: Connection): Promise<void> {
    await connection.send('UNLINK', ...allKeys(this.#keys.live(spec, open), spec.keyGroups));
    await connection.send('HDEL', this.#keys.table(spec), `open:${open}`);
  }

  async #release(job: string, snapshot: string): Promise<void> {
    const connection = await this.#connection();
    const text = await connection.send<Buffer | null>('HGET', this.#keys.snapshots(job), snapshot);
    if (text === null) return;
    const { start, end } = JSON.parse(text.toString()) as KeptSnapshot;
    // In one step: what has a name is whole. They are sent in one tick, so no other command comes between.
    await Promise.all([
      connection.send('MULTI'),
      connection.send('UNLINK', ...allKeys(this.#keys.kept(job, snapshot), { start, end })),
      connection.send('HDEL', this.#keys.snapshots(job), snapshot),
      connection.send('EXEC'),
    ]);
    const left = await connection.send<number>('HLEN', this.#keys.snapshots(job));
    if (left === 0) await connection.send('SREM', this.#keys.jobs, job);
  }

  async #connection(): Promise<Connection> {
    const common = await this.#common.catch(() => undefined);
    if (common?.isOpen === true) return common;
    this.#checkOpen();
    this.#common = Connection.open(this.#options.url);
    return this.#common;
  }

  #checkOpen(): void {
    if (this.#closed) throw new MillraceError('state-table-closed', 'the state store is closed');
  }
}

function snapshotOf(handle: SnapshotHandle): { readonly job: string; readonly id: string } {
  const { job, snapshot: id } = handle.data;
  if (handle.store === 'redis' && typeof id === 'string' && typeof job === 'string') return { job, id };
  const text = `a snapshot of store ${handle.store} cannot be restored by store redis`;
  throw new MillraceError('bad-argument', text, { details: { operator: handle.operator } });
}

function otherParallelism(spec: TableSpec, was: number): MillraceError {
  const text = `the shards of ${spec.operator} are ${was}, one for each key group: set maxParallelism to ${was}`;
  return new MillraceError('kv-shards-fixed', text, { details: { operator: spec.operator, shards: was } });
}

function texts(replies: readonly Buffer[]): string[] {
  return replies.map(String);
}
