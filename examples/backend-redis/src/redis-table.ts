import { type Clock, containsKeyGroup, type MaybePromise, MillraceError } from '@millrace/kernel';
import {
  type Claim,
  type PackedKeys,
  type PackedValues,
  type Peek,
  packedItem,
  packKeys,
  packValues,
  type ScanPage,
  type ScanRange,
  type SnapshotHandle,
  type StateTable,
  type TableSpec,
  type TableStats,
  type WriteBatch,
} from '@millrace/state';
import type { Connection } from './connection.ts';
import { type Keys, keyGroupOfStored, type ShardKeys } from './keys.ts';
import { keepScript, scanScript, writeScript } from './scripts.ts';
import { liveValue, storedValue } from './stored-value.ts';

export interface RedisTableOptions {
  readonly spec: TableSpec;
  /** The table's own: its order is the order of the table's calls. */
  readonly connection: Connection;
  readonly keys: Keys;
  /** Number of this open. */
  readonly open: number;
  readonly claim: Claim;
  readonly entries: number;
  readonly waitingBytesMax: number;
  readonly clock: Clock;
  readonly onClose: () => Promise<void>;
}

/** What a snapshot is, as it lies in Redis. */
export interface KeptSnapshot {
  readonly start: number;
  readonly end: number;
  readonly maxParallelism: number;
  readonly entries: number;
}

const pageEntriesDefault = 256;
/** Arguments of one script; Lua has room for some thousands. */
const writesPerScript = 500;

export class RedisTable implements StateTable {
  readonly spec: TableSpec;
  readonly #options: RedisTableOptions;
  readonly #shard: (keyGroup: number) => ShardKeys;
  readonly #table: string;
  /** Writes that Redis has not answered. */
  readonly #underWay = new Set<Promise<unknown>>();
  #waitingBytes = 0;
  #room: PromiseWithResolvers<void> | undefined;
  #failure: MillraceError | undefined;
  #entries: number;
  #bytesWritten = 0;
  #bytesAtSnapshot = 0;
  #closing: Promise<void> | undefined;

  constructor(options: RedisTableOptions) {
    this.#options = options;
    this.spec = options.spec;
    this.#shard = options.keys.live(options.spec, options.open);
    this.#table = options.keys.table(options.spec);
    this.#entries = options.entries;
  }

  /** Nothing of the table is in this process. */
  peek(): Peek {
    this.#check();
    return 'unknown';
  }

  multiGet(keys: PackedKeys): MaybePromise<PackedValues> {
    this.#check();
    if (keys.count === 0) return packValues([]);
    const { connection, clock } = this.#options;
    const byShard = new Map<number, { readonly at: number[]; readonly keys: Buffer[] }>();
    for (let i = 0; i < keys.count; i++) {
      const key = packedItem(keys, i);
      const keyGroup = keyGroupOfStored(key);
      if (!containsKeyGroup(this.spec.keyGroups, keyGroup)) continue;
      const shard = byShard.get(keyGroup) ?? { at: [], keys: [] };
      byShard.set(keyGroup, shard);
      shard.at.push(i);
      shard.keys.push(Buffer.from(key)); // the caller may reuse what it gave
    }
    const values = Array.from<Uint8Array | undefined>({ length: keys.count });
    const reading = [...byShard].map(async ([keyGroup, { at, keys: wanted }]) => {
      const found = await connection.send<(Buffer | null)[]>('HMGET', this.#shard(keyGroup).values, ...wanted);
      for (const [i, stored] of found.entries()) values[at[i] as number] = liveValue(stored, clock.nowMs());
    });
    return this.#guard(Promise.all(reading)).then(() => packValues(values));
  }

  write(batch: WriteBatch): MaybePromise<void> {
    this.#check();
    const { bytes } = batch.arena;
    const byShard = new Map<number, (string | Buffer)[]>();
    for (let i = 0; i < batch.count; i++) {
      const key = Buffer.from(bytes.subarray(batch.keyStart(i), batch.valueStart(i)));
      const keyGroup = keyGroupOfStored(key);
      if (!containsKeyGroup(this.spec.keyGroups, keyGroup)) {
        throw new MillraceError('bad-argument', `key group ${keyGroup} is not one of ${this.spec.operator}'s table`);
      }
      const args = byShard.get(keyGroup) ?? [];
      byShard.set(keyGroup, args);
      const value = bytes.subarray(batch.valueStart(i), batch.valueEnd(i));
      const expiresAtMs = batch.expiresAtMs(i);
      if (batch.isDelete(i)) args.push(key, 'd', '0', '');
      else args.push(key, 'p', String(expiresAtMs), storedValue(value, expiresAtMs));
      this.#entries += batch.isDelete(i) ? -1 : 1;
    }
    const costBytes = batch.arena.position + 64 * batch.count;
    this.#bytesWritten += costBytes;
    this.#track(costBytes, Promise.all([...byShard].map(([keyGroup, args]) => this.#writeShard(keyGroup, args))));
    return this.#waitingBytes <= this.#options.waitingBytesMax ? undefined : this.#whenRoom();
  }

  /** Reads the whole range at once, for a view of one instant; the pages are cut from it. */
  scan({ start, end, pageEntriesMax = pageEntriesDefault }: ScanRange): AsyncIterable<ScanPage> {
    this.#check();
    const { connection } = this.#options;
    const from = Buffer.concat([Buffer.from('['), start]);
    const to = end === undefined ? '+' : Buffer.concat([Buffer.from('('), end]);
    const { keyGroups } = this.spec;
    const first = Math.max(keyGroups.start, keyGroupOfStored(start));
    const last = end === undefined ? keyGroups.end : Math.min(keyGroups.end, keyGroupOfStored(end));
    const parts: Promise<Buffer[]>[] = [];
    for (let keyGroup = first; keyGroup <= last; keyGroup++) {
      const { values, order } = this.#shard(keyGroup);
      parts.push(this.#guard(connection.send<Buffer[]>('EVAL', scanScript, 2, values, order, from, to)));
    }
    for (const part of parts) part.catch(() => undefined); // it may never be read
    return this.#pages(parts, pageEntriesMax);
  }

  async snapshot(checkpoint: number): Promise<SnapshotHandle> {
    this.#check();
    const { connection, keys, open } = this.#options;
    const { job, operator, keyGroups, generation, maxParallelism } = this.spec;
    const id = `${encodeURIComponent(operator)}/${checkpoint}-${open}`;
    const kept = keys.kept(job, id);
    // Before anything is awaited: what is sent after this is not in the copies.
    const copies: Promise<unknown>[] = [];
    for (let keyGroup = keyGroups.start; keyGroup <= keyGroups.end; keyGroup++) {
      copies.push(...copyShard(connection, this.#shard(keyGroup), kept(keyGroup)));
    }
    const { start, end } = keyGroups;
    const what: KeptSnapshot = { start, end, maxParallelism, entries: Math.max(0, this.#entries) };
    const args = [String(generation), id, JSON.stringify(what), job];
    const keeping = connection.send('EVAL', keepScript, 3, this.#table, keys.snapshots(job), keys.jobs, ...args);
    const bytesPut = this.#bytesWritten - this.#bytesAtSnapshot;
    this.#bytesAtSnapshot = this.#bytesWritten;
    await this.#guard(Promise.all([...this.#underWay, ...copies, keeping]));
    return { store: 'redis', operator, keyGroups, data: { job, snapshot: id }, holders: [], bytesPut, bytesLinked: 0 };
  }

  stats(): TableStats {
    return {
      entriesEstimate: Math.max(0, this.#entries),
      bytesInMemory: this.#waitingBytes,
      bytesStored: this.#bytesWritten,
    };
  }

  close(): Promise<void> {
    this.#fail(new MillraceError('state-table-closed', `the table of ${this.spec.operator} is closed`));
    this.#closing ??= this.#options.onClose();
    return this.#closing;
  }

  async #writeShard(keyGroup: number, args: readonly (string | Buffer)[]): Promise<void> {
    const { connection, clock } = this.#options;
    const { values, order, expiry } = this.#shard(keyGroup);
    const sent: Promise<unknown>[] = [];
    for (let i = 0; i < args.length; i += writesPerScript * 4) {
      const some = args.slice(i, i + writesPerScript * 4);
      const head = [String(this.spec.generation), String(clock.nowMs())];
      sent.push(connection.send('EVAL', writeScript, 4, this.#table, values, order, expiry, ...head, ...some));
    }
    await Promise.all(sent);
  }

  async *#pages(parts: readonly Promise<Buffer[]>[], entriesMax: number): AsyncGenerator<ScanPage> {
    let keys: Buffer[] = [];
    let values: Uint8Array[] = [];
    for (const part of parts) {
      const found = await part;
      for (let i = 0; i < found.length; i += 2) {
        const value = liveValue(found[i + 1] as Buffer, this.#options.clock.nowMs());
        if (value === undefined) continue;
        keys.push(found[i] as Buffer);
        values.push(value);
        if (keys.length < entriesMax) continue;
        this.#check();
        yield { keys: packKeys(keys), values: packValues(values) };
        keys = [];
        values = [];
      }
    }
    this.#check();
    if (keys.length > 0) yield { keys: packKeys(keys), values: packValues(values) };
  }

  #track(costBytes: number, writing: Promise<unknown>): void {
    this.#waitingBytes += costBytes;
    const done = writing.then(
      () => {
        this.#waitingBytes -= costBytes;
        if (this.#waitingBytes > this.#options.waitingBytesMax / 2) return;
        this.#room?.resolve();
        this.#room = undefined;
      },
      // A write is lost, and with it what the table holds.
      (error: unknown) => this.#fail(MillraceError.from(error)),
    );
    this.#underWay.add(done);
    void done.finally(() => this.#underWay.delete(done));
  }

  #whenRoom(): Promise<void> {
    this.#room ??= Promise.withResolvers();
    this.#room.promise.catch(() => undefined);
    return this.#room.promise;
  }

  /** After what came from Redis, whether the table is still whole and still ours. */
  async #guard<T>(reply: Promise<T>): Promise<T> {
    try {
      const value = await reply;
      this.#check();
      return value;
    } catch (error) {
      if (MillraceError.from(error).kind === 'fenced') this.#fail(MillraceError.from(error));
      throw this.#failure ?? error;
    }
  }

  #check(): void {
    if (this.#failure !== undefined) throw this.#failure;
    this.#options.claim.check();
  }

  #fail(error: MillraceError): void {
    this.#failure ??= error;
    this.#room?.reject(this.#failure);
    this.#room = undefined;
  }
}

/** Copies a shard inside Redis; what is not there is not copied. */
export function copyShard(connection: Connection, from: ShardKeys, to: ShardKeys): Promise<unknown>[] {
  return [
    connection.send('COPY', from.values, to.values, 'REPLACE'),
    connection.send('COPY', from.order, to.order, 'REPLACE'),
    connection.send('COPY', from.expiry, to.expiry, 'REPLACE'),
  ];
}
