/**
 * What the ring knows of tables beyond their entries: incarnations, generations, snapshots, pins and leases.
 *
 * Crash order: an incarnation is taken before anything is written under it; a snapshot's row is written after all its
 * entries; a pin before anything is read through it. A snapshot's row is deleted before its entries are purged.
 */
import { MillraceError, type Random, sleep, systemClock } from '@millrace/kernel';
import type { TableSpec } from '@millrace/state';
import { toNumber } from './reader.ts';
import type { Ring, Row } from './ring.ts';
import type { CqlSettings } from './settings.ts';
import { type Span, spansSchema } from './spans.ts';

/** An open table, as the ring knows it. */
export interface Incarnation {
  readonly table: string;
  readonly incarnation: number;
  readonly buckets: number;
}

export interface StoredSnapshot {
  readonly table: string;
  readonly shards: number;
  readonly entries: number;
  readonly spans: readonly Span[];
}

/** Rows of `leases` vanish after this long without a word of their table. */
export const leaseMs = 120_000;
const contentionPauseMs = 20;

export function tableIdOf({ job, operator }: Pick<TableSpec, 'job' | 'operator'>): string {
  return `${encodeURIComponent(job)}/${encodeURIComponent(operator)}`;
}

export class Catalog {
  readonly #ring: Ring;
  readonly #settings: CqlSettings;
  readonly #random: Random;
  /** The last claim of each table by this process: two at once would only get in each other's way. */
  readonly #claims = new Map<string, Promise<unknown>>();

  constructor(ring: Ring, settings: CqlSettings, random: Random) {
    this.#ring = ring;
    this.#settings = settings;
    this.#random = random;
  }

  /** Takes the next incarnation of a table. Rejects with `state-fenced` when a newer generation has been there. */
  async claim(spec: TableSpec): Promise<Incarnation> {
    const table = tableIdOf(spec);
    const before = this.#claims.get(table) ?? Promise.resolve();
    const claiming = before.then(
      () => this.#claim(table, spec),
      () => this.#claim(table, spec),
    );
    this.#claims.set(table, claiming);
    try {
      return await claiming;
    } finally {
      if (this.#claims.get(table) === claiming) this.#claims.delete(table);
    }
  }

  /** Rejects with `state-fenced` when a newer generation has opened the table. */
  async checkGeneration({ job, operator, generation }: TableSpec): Promise<void> {
    const query = `SELECT generation FROM ${this.#name('tables')} WHERE table_id = ?`;
    const [row] = await this.#ring.rows({ query, params: [tableIdOf({ job, operator })] });
    const newest = row === undefined ? 0 : toNumber(row['generation']);
    if (newest > generation) throw fenced(operator, generation, newest);
  }

  async newestIncarnation(table: string): Promise<Incarnation | undefined> {
    const row = await this.#tableRow(table);
    if (row === undefined) return undefined;
    return { table, incarnation: toNumber(row['incarnation']), buckets: Number(row['buckets']) };
  }

  async shardsOf(table: string): Promise<number> {
    return Number((await this.#tableRow(table))?.['shards'] ?? 0);
  }

  async putSnapshot(job: string, id: string, snapshot: StoredSnapshot): Promise<void> {
    const { table, shards, entries, spans } = snapshot;
    const query = `INSERT INTO ${this.#name('snapshots')} (job, id, table_id, shards, entry_count, spans) VALUES (?, ?, ?, ?, ?, ?)`;
    const params = [job, id, table, shards, entries, JSON.stringify(spans)];
    await this.#ring.write([{ query, params }]);
  }

  /** Rejects with `cql-snapshot-missing`. */
  async readSnapshot(job: string, id: string): Promise<StoredSnapshot> {
    const query = `SELECT table_id, shards, entry_count, spans FROM ${this.#name('snapshots')} WHERE job = ? AND id = ?`;
    const [row] = await this.#ring.rows({ query, params: [job, id] });
    if (row !== undefined) return toSnapshot(row);
    const message = `snapshot ${id} of ${job} is not in keyspace ${this.#settings.keyspace} of the ring`;
    throw new MillraceError('cql-snapshot-missing', message, { details: { job, snapshot: id } });
  }

  async jobs(): Promise<readonly string[]> {
    const query = `SELECT DISTINCT job FROM ${this.#name('snapshots')}`;
    const jobs: string[] = [];
    for await (const rows of this.#ring.pages({ query, params: [] }, 1000)) {
      for (const row of rows) jobs.push(String(row['job']));
    }
    return jobs;
  }

  /** Snapshots of a job, by id. */
  async snapshots(job: string): Promise<ReadonlyMap<string, StoredSnapshot>> {
    const query = `SELECT id, table_id, shards, entry_count, spans FROM ${this.#name('snapshots')} WHERE job = ?`;
    const found = new Map<string, StoredSnapshot>();
    for await (const rows of this.#ring.pages({ query, params: [job] }, 1000)) {
      for (const row of rows) found.set(String(row['id']), toSnapshot(row));
    }
    return found;
  }

  async removeSnapshot(job: string, id: string): Promise<void> {
    const query = `DELETE FROM ${this.#name('snapshots')} WHERE job = ? AND id = ?`;
    await this.#ring.write([{ query, params: [job, id] }]);
  }

  /** Says that `reader` reads layers of `table` that are not its own. */
  async putPin(table: string, pin: string, reader: string, spans: readonly Span[]): Promise<void> {
    const query = `INSERT INTO ${this.#name('pins')} (table_id, pin, job, spans) VALUES (?, ?, ?, ?)`;
    await this.#ring.write([{ query, params: [table, pin, reader, JSON.stringify(spans)] }]);
  }

  /** What others read of a table, by the name of the pin. */
  async pins(table: string): Promise<ReadonlyMap<string, readonly Span[]>> {
    const query = `SELECT pin, spans FROM ${this.#name('pins')} WHERE table_id = ?`;
    const rows = await this.#ring.rows({ query, params: [table] });
    return new Map(rows.map((row) => [String(row['pin']), parseSpans(row['spans'])]));
  }

  /** Removes the pins of `table` whose names begin with `prefix`. */
  async removePins(table: string, prefix: string): Promise<void> {
    const query = `DELETE FROM ${this.#name('pins')} WHERE table_id = ? AND pin = ?`;
    for (const pin of (await this.pins(table)).keys()) {
      if (pin.startsWith(prefix)) await this.#ring.write([{ query, params: [table, pin] }]);
    }
  }

  async putLease(table: string, incarnation: number): Promise<void> {
    const query = `INSERT INTO ${this.#name('leases')} (table_id, incarnation) VALUES (?, ?) USING TTL ${leaseMs / 1000}`;
    await this.#ring.write([{ query, params: [table, incarnation] }]);
  }

  async removeLease(table: string, incarnation: number): Promise<void> {
    const query = `DELETE FROM ${this.#name('leases')} WHERE table_id = ? AND incarnation = ?`;
    await this.#ring.write([{ query, params: [table, incarnation] }]);
  }

  async isOpen(table: string): Promise<boolean> {
    const query = `SELECT incarnation FROM ${this.#name('leases')} WHERE table_id = ? LIMIT 1`;
    return (await this.#ring.rows({ query, params: [table] })).length > 0;
  }

  async #claim(table: string, spec: TableSpec): Promise<Incarnation> {
    const deadlineMs = systemClock.monotonicMs() + Math.max(this.#settings.giveUpAfterMs, 5000);
    for (;;) {
      const row = await this.#tableRow(table);
      const newest = row === undefined ? 0 : toNumber(row['generation']);
      if (newest > spec.generation) throw fenced(spec.operator, spec.generation, newest);
      const incarnation = (row === undefined ? 0 : toNumber(row['incarnation'])) + 1;
      const buckets = row === undefined ? this.#settings.buckets : Number(row['buckets']);
      const { generation, maxParallelism } = spec;
      const won =
        row === undefined
          ? await this.#ring.compareAndSet({
              query: `INSERT INTO ${this.#name('tables')} (table_id, incarnation, generation, shards, buckets) VALUES (?, ?, ?, ?, ?) IF NOT EXISTS`,
              params: [table, incarnation, generation, maxParallelism, buckets],
            })
          : await this.#ring.compareAndSet({
              query: `UPDATE ${this.#name('tables')} SET incarnation = ?, generation = ?, shards = ? WHERE table_id = ? IF incarnation = ?`,
              params: [incarnation, generation, maxParallelism, table, incarnation - 1],
            });
      if (won) return { table, incarnation, buckets };
      if (systemClock.monotonicMs() > deadlineMs) {
        throw new MillraceError('cql-unavailable', `table ${table} could not be claimed: too many want it at once`);
      }
      await sleep(systemClock, contentionPauseMs * this.#random.float());
    }
  }

  async #tableRow(table: string): Promise<Row | undefined> {
    const query = `SELECT incarnation, generation, shards, buckets FROM ${this.#name('tables')} WHERE table_id = ?`;
    return (await this.#ring.rowsSerial({ query, params: [table] }))[0];
  }

  #name(table: string): string {
    return `${this.#settings.keyspace}.${table}`;
  }
}

function toSnapshot(row: Row): StoredSnapshot {
  return {
    table: String(row['table_id']),
    shards: Number(row['shards']),
    entries: toNumber(row['entry_count']),
    spans: parseSpans(row['spans']),
  };
}

function parseSpans(text: unknown): readonly Span[] {
  return spansSchema.parse(JSON.parse(String(text)));
}

function fenced(operator: string, generation: number, newest: number): MillraceError {
  const message = `generation ${generation} is over: ${newest} has opened ${operator}`;
  return new MillraceError('state-fenced', message, { details: { operator, newest } });
}
