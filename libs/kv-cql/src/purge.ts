/**
 * Removes rows that nobody will see again: versions superseded for every snapshot that exists, those of dead incarnations,
 * and, at the bottom, deletes and expired entries. It goes through the table's partitions with a budget of rows, a pass at
 * a time. A pass looks at rows up to the sequence that was closed when it began and takes everything newer for unseen, so
 * that snapshots taken meanwhile need nothing of what it removes.
 */
import { containsKeyGroup, type KeyGroupRange } from '@millrace/kernel';
import type { Catalog, Incarnation } from './catalog.ts';
import { type Lineage, newestOf, unneeded } from './lineage.ts';
import { toNumber } from './reader.ts';
import type { Ring, Row, Statement } from './ring.ts';
import type { CqlSettings } from './settings.ts';
import type { Span } from './spans.ts';
import type { lastTimestampOf } from './writer.ts';

export interface PurgeOptions {
  readonly ring: Ring;
  readonly catalog: Catalog;
  readonly settings: CqlSettings;
  readonly own: Incarnation;
  readonly job: string;
  readonly keyGroups: KeyGroupRange;
  /** There is something to purge from the start. */
  readonly due: boolean;
  readonly nowMs: () => number;
  readonly nextTimestamp: () => ReturnType<typeof lastTimestampOf>;
}

interface Version {
  readonly epoch: number;
  readonly gone: boolean;
}

interface Pass {
  /** Rows with a greater epoch are left alone. */
  readonly epochMax: number;
  readonly views: readonly Span[];
  /** Whether a delete hides nothing but older rows of this table. */
  readonly single: boolean;
  readonly rows: AsyncGenerator<Removal>;
}

interface Removal {
  readonly looked: number;
  readonly statements: readonly Statement[];
}

const expiryPassMs = 60_000;
const pageRows = 1000;

export class Purge {
  due: boolean;
  /** Entries with a time to live were written. */
  sawExpiry = false;
  readonly #options: PurgeOptions;
  readonly #select: string;
  readonly #delete: string;
  #pass: Pass | undefined;
  #passEndMs = 0;

  constructor(options: PurgeOptions) {
    this.#options = options;
    this.due = options.due;
    const entries = `${options.settings.keyspace}.versions`;
    const partition = 'table_id = ? AND shard = ? AND bucket = ?';
    this.#select = `SELECT key, epoch, expires_at, WRITETIME(value) AS written FROM ${entries} WHERE ${partition}`;
    this.#delete = `DELETE FROM ${entries} WHERE ${partition} AND key = ? AND epoch = ?`;
  }

  /** Looks at some `rowsMax` rows. `current` are the spans that the table itself sees, the first those of closed sequences. */
  async step(rowsMax: number, current: readonly (readonly Span[])[]): Promise<number> {
    if (!this.due && this.sawExpiry && this.#options.nowMs() - this.#passEndMs > expiryPassMs) this.due = true;
    if (this.#pass === undefined) {
      if (!this.due) return 0;
      this.#pass = await this.#begin(current);
      this.due = false;
    }
    let removed = 0;
    for (let looked = 0; looked < rowsMax; ) {
      const next = await this.#pass.rows.next();
      if (next.done === true) {
        this.#pass = undefined;
        this.#passEndMs = this.#options.nowMs();
        break;
      }
      looked += next.value.looked;
      removed += next.value.statements.length;
      for (let i = 0; i < next.value.statements.length; i += 100) {
        await this.#options.ring.write(next.value.statements.slice(i, i + 100), this.#options.nextTimestamp());
      }
    }
    return removed;
  }

  async #begin(current: readonly (readonly Span[])[]): Promise<Pass> {
    const { catalog, own, job } = this.#options;
    const [frozen = []] = current;
    // In this order: a fork pins what it needs before the snapshot that it began with may be released.
    const snapshots = await catalog.snapshots(job);
    const pins = await catalog.pins(own.table);
    const views = [
      ...current.flat(),
      ...[...snapshots.values()].flatMap((one) => one.spans),
      ...[...pins.values()].flat(),
    ];
    const epochMax = Math.max(-1, ...frozen.map(({ layers }) => newestOf(layers[0]?.lineage ?? [])));
    const single = views.every(({ layers }) =>
      layers.every((layer, i) => layer.table !== own.table || i === layers.length - 1),
    );
    return { epochMax, views, single, rows: this.#rows(epochMax, views, single) };
  }

  async *#rows(epochMax: number, views: readonly Span[], single: boolean): AsyncGenerator<Removal> {
    const { own, keyGroups, ring } = this.#options;
    for (let shard = keyGroups.start; shard <= keyGroups.end; shard++) {
      const lineages = lineagesAt(own.table, shard, views);
      for (let bucket = 0; bucket < own.buckets; bucket++) {
        let key: Buffer | undefined;
        let versions: Version[] = [];
        const partition = [own.table, shard, bucket];
        const removal = (): Statement[] => {
          const gone = key === undefined ? [] : this.#gone(versions, lineages, single);
          return gone.map((epoch) => ({ query: this.#delete, params: [...partition, key, epoch] }));
        };
        for await (const rows of ring.pages({ query: this.#select, params: partition }, pageRows)) {
          const statements: Statement[] = [];
          for (const row of rows) {
            const rowKey = row['key'] as Buffer;
            if (key === undefined || !key.equals(rowKey)) {
              statements.push(...removal());
              key = rowKey;
              versions = [];
            }
            const version = toVersion(row, this.#options.nowMs());
            if (version.epoch <= epochMax) versions.push(version);
          }
          yield { looked: Math.max(1, rows.length), statements };
        }
        yield { looked: 0, statements: removal() };
      }
    }
  }

  /** Which of a key's versions, newest first, may go. */
  #gone(versions: readonly Version[], lineages: readonly Lineage[], single: boolean): readonly number[] {
    const epochs = versions.map((version) => version.epoch);
    const gone = new Set(unneeded(epochs, lineages));
    if (!single) return [...gone];
    // From the oldest that stays: what says only that there is nothing is needed no more when there is nothing beneath.
    for (const version of versions.toReversed()) {
      if (gone.has(version.epoch)) continue;
      if (!version.gone) break;
      gone.add(version.epoch);
    }
    return [...gone];
  }
}

function lineagesAt(table: string, shard: number, views: readonly Span[]): readonly Lineage[] {
  return views.flatMap(({ keyGroups, layers }) =>
    containsKeyGroup(keyGroups, shard) ? layers.flatMap((layer) => (layer.table === table ? [layer.lineage] : [])) : [],
  );
}

function toVersion(row: Row, nowMs: number): Version {
  const expiresAtMs = row['expires_at'] === null ? 0 : toNumber(row['expires_at']);
  return {
    epoch: toNumber(row['epoch']),
    gone: row['written'] === null || (expiresAtMs !== 0 && nowMs >= expiresAtMs),
  };
}
