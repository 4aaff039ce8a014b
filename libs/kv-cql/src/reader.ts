/**
 * Reads stored rows as spans see them: of each key the newest version that its lineage contains. The ring is asked for the
 * newest version only; where that is not one to be seen (written after a scan's instant, or by a dead incarnation not yet
 * purged) all versions of the key are read.
 */
import { compareBytes, Semaphore } from '@millrace/kernel';
import type { types } from 'cassandra-driver';
import { bucketOf, bucketOfRange } from './buckets.ts';
import { type Lineage, sees } from './lineage.ts';
import { keyText } from './pending-writes.ts';
import type { Ring, Row } from './ring.ts';
import type { CqlSettings } from './settings.ts';
import type { Layer, Span } from './spans.ts';

/** A version of a key. Without a value it is a delete, or the ring has expired it. */
export interface StoredRow {
  readonly key: Uint8Array;
  readonly keyText: string;
  readonly epoch: number;
  readonly value: Uint8Array | undefined;
  readonly expiresAtMs: number;
}

export interface KeyRange {
  readonly start: Uint8Array;
  readonly end: Uint8Array | undefined;
}

/** Rows in key order, and where to go on; without `next` there are no more. */
export interface ReadPage {
  readonly rows: readonly StoredRow[];
  readonly next: Uint8Array | undefined;
}

/** Bytes that one page of a scan asks of the ring, about. */
const pageBytesTarget = 4 * 1024 * 1024;
const shardsAhead = 16;

/** Stored keys begin with their key group, two bytes, big-endian. */
export function keyGroupOfStored(key: Uint8Array): number {
  return ((key[0] ?? 0) << 8) | (key[1] ?? 0);
}

export function startOfKeyGroup(keyGroup: number): Uint8Array {
  return Uint8Array.of(keyGroup >>> 8, keyGroup & 0xff);
}

export class Reader {
  readonly #ring: Ring;
  readonly #settings: CqlSettings;
  readonly #requests: Semaphore;
  readonly #newestOfKeys: string;
  readonly #versionsOfKeys: string;
  readonly #newestInRange: string;
  /** Of the rows met so far, to size the pages of scans. */
  #rowsMet = 1;
  #bytesMet = 256;

  constructor(ring: Ring, settings: CqlSettings) {
    this.#ring = ring;
    this.#settings = settings;
    this.#requests = new Semaphore(settings.requestsMax);
    const from = `SELECT key, epoch, value, expires_at FROM ${settings.keyspace}.versions WHERE table_id = ? AND shard = ? AND bucket = ?`;
    const newest = 'GROUP BY table_id, shard, bucket, key';
    this.#newestOfKeys = `${from} AND key IN ? ${newest}`;
    this.#versionsOfKeys = `${from} AND key IN ?`;
    this.#newestInRange = `${from} AND key >= ? AND key < ? ${newest} LIMIT ?`;
  }

  /** The visible rows of the keys, by {@link keyText}. All keys lie in the span. */
  async get(span: Span, keys: readonly Uint8Array[]): Promise<Map<string, StoredRow>> {
    const found = new Map<string, StoredRow>();
    let wanted = keys;
    for (const layer of span.layers) {
      if (wanted.length === 0) break;
      const parts = await Promise.all(this.#partitions(layer, wanted).map((part) => this.#getPartition(layer, part)));
      for (const row of parts.flat()) found.set(row.keyText, row);
      wanted = wanted.filter((key) => !found.has(keyText(key)));
    }
    return found;
  }

  /** The first rows of a range, deletes left out. */
  async scan(spans: readonly Span[], range: KeyRange, rowsMax: number): Promise<ReadPage> {
    const shards = shardsOf(spans, range).slice(0, shardsAhead + 1);
    const ahead = shards.slice(0, shardsAhead);
    const parts = await Promise.all(ahead.map((shard) => this.#scanShard(shard, range, rowsMax)));
    const rows: StoredRow[] = [];
    for (const part of parts) {
      for (const row of part.rows) if (row.value !== undefined) rows.push(row);
      if (part.next !== undefined) return { rows, next: part.next };
    }
    const more = shards[shardsAhead];
    return { rows, next: more === undefined ? undefined : startOfKeyGroup(more.keyGroup) };
  }

  async #getPartition(layer: Layer, { shard, bucket, keys }: Partition): Promise<readonly StoredRow[]> {
    const params = [layer.table, shard, bucket, keys.map(toBuffer)];
    const newest = await this.#rows(this.#newestOfKeys, params);
    return this.#visible(layer, shard, bucket, newest);
  }

  /** `newest` with versions that are not to be seen replaced by older ones. */
  async #visible(
    layer: Layer,
    shard: number,
    bucket: number,
    newest: readonly StoredRow[],
  ): Promise<readonly StoredRow[]> {
    const hidden = newest.filter((row) => !sees(layer.lineage, row.epoch));
    if (hidden.length === 0) return newest;
    const older = await Promise.all(
      cut(hidden, this.#settings.keysPerRead).map((rows) =>
        this.#rows(this.#versionsOfKeys, [layer.table, shard, bucket, rows.map((row) => toBuffer(row.key))]),
      ),
    );
    return [...newest.filter((row) => sees(layer.lineage, row.epoch)), ...firstSeen(older.flat(), layer.lineage)];
  }

  async #scanShard({ keyGroup, layers }: Shard, range: KeyRange, rowsMax: number): Promise<ReadPage> {
    const start = later(range.start, startOfKeyGroup(keyGroup));
    const end = earlier(range.end, startOfKeyGroup(keyGroup + 1));
    if (compareBytes(start, end) >= 0) return { rows: [], next: undefined };
    const limit = Math.max(1, Math.min(rowsMax, Math.ceil((pageBytesTarget * this.#rowsMet) / this.#bytesMet)));
    const cursors = layers.flatMap((layer) => {
      const only = bucketOfRange(start, end, layer.buckets);
      const buckets = only === undefined ? Array.from({ length: layer.buckets }, (_, bucket) => bucket) : [only];
      return buckets.map((bucket) => ({ layer, bucket }));
    });
    const pages = await Promise.all(
      cursors.map(({ layer, bucket }) =>
        this.#rows(this.#newestInRange, [layer.table, keyGroup, bucket, toBuffer(start), toBuffer(end), limit]),
      ),
    );
    // As far as every cursor has come.
    let bound: Uint8Array | undefined;
    for (const page of pages) {
      const last = page.at(-1);
      if (page.length === limit && last !== undefined)
        bound = bound === undefined ? last.key : earlier(bound, last.key);
    }
    const byKey = new Map<string, StoredRow>();
    for (const [i, { layer, bucket }] of cursors.entries()) {
      const inBound = (pages[i] as readonly StoredRow[]).filter(
        (row) => bound === undefined || compareBytes(row.key, bound) <= 0,
      );
      for (const row of await this.#visible(layer, keyGroup, bucket, inBound)) {
        // The upper layers come first.
        if (!byKey.has(row.keyText)) byKey.set(row.keyText, row);
      }
    }
    const rows = [...byKey.values()].toSorted((a, b) => compareBytes(a.key, b.key));
    return { rows, next: bound === undefined ? undefined : Uint8Array.of(...bound, 0) };
  }

  #partitions(layer: Layer, keys: readonly Uint8Array[]): readonly Partition[] {
    const partitions = new Map<number, { shard: number; bucket: number; keys: Uint8Array[] }>();
    for (const key of keys) {
      const shard = keyGroupOfStored(key);
      const bucket = bucketOf(key, layer.buckets);
      const id = shard * layer.buckets + bucket;
      const partition = partitions.get(id);
      if (partition === undefined) partitions.set(id, { shard, bucket, keys: [key] });
      else partition.keys.push(key);
    }
    return [...partitions.values()].flatMap(({ keys: all, ...rest }) =>
      cut(all, this.#settings.keysPerRead).map((some) => ({ ...rest, keys: some })),
    );
  }

  async #rows(query: string, params: readonly unknown[]): Promise<readonly StoredRow[]> {
    const rows: StoredRow[] = [];
    await this.#requests.run(async () => {
      for await (const page of this.#ring.pages({ query, params }, 5000)) {
        for (const row of page) rows.push(toStoredRow(row));
      }
    });
    for (const row of rows) this.#bytesMet += 64 + row.key.length + (row.value?.length ?? 0);
    this.#rowsMet += rows.length;
    return rows;
  }
}

interface Partition {
  readonly shard: number;
  readonly bucket: number;
  readonly keys: readonly Uint8Array[];
}

interface Shard {
  readonly keyGroup: number;
  readonly layers: readonly Layer[];
}

/** The shards that a range touches, in order. */
function shardsOf(spans: readonly Span[], { start, end }: KeyRange): readonly Shard[] {
  const first = keyGroupOfStored(start);
  const last = end === undefined ? Number.POSITIVE_INFINITY : keyGroupOfStored(end);
  return spans.flatMap(({ keyGroups, layers }) => {
    const shards: Shard[] = [];
    for (let keyGroup = Math.max(first, keyGroups.start); keyGroup <= Math.min(last, keyGroups.end); keyGroup++) {
      shards.push({ keyGroup, layers });
    }
    return shards;
  });
}

/** Of the versions of some keys, newest first within a key, the first of each that is to be seen. */
function firstSeen(versions: readonly StoredRow[], lineage: Lineage): readonly StoredRow[] {
  const seen = new Map<string, StoredRow>();
  for (const row of versions) if (!seen.has(row.keyText) && sees(lineage, row.epoch)) seen.set(row.keyText, row);
  return [...seen.values()];
}

function toStoredRow(row: Row): StoredRow {
  const key = row['key'] as Buffer;
  const value = row['value'] as Buffer | null;
  return {
    key,
    keyText: keyText(key),
    epoch: toNumber(row['epoch']),
    value: value ?? undefined,
    expiresAtMs: row['expires_at'] === null ? 0 : toNumber(row['expires_at']),
  };
}

export function toNumber(long: unknown): number {
  return (long as types.Long).toNumber();
}

export function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

export function cut<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));
}

function later(a: Uint8Array, b: Uint8Array): Uint8Array {
  return compareBytes(a, b) >= 0 ? a : b;
}

function earlier(a: Uint8Array | undefined, b: Uint8Array): Uint8Array {
  return a === undefined || compareBytes(a, b) > 0 ? b : a;
}
