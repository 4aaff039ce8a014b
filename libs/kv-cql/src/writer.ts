/**
 * Sends a table's pending writes to the ring in batches, some at once. Each batch has a timestamp greater than that of all
 * before it, of this incarnation and of earlier ones: so a batch that was repeated, or that arrives late, never wins over a
 * newer write of the same row. No clock is involved.
 */
import { MillraceError } from '@millrace/kernel';
import type { Counter, Telemetry } from '@millrace/telemetry';
import cassandra from 'cassandra-driver';
import { bucketOf } from './buckets.ts';
import { epochOf } from './lineage.ts';
import { type PendingWrite, type PendingWrites, type WritePart, writeBytes } from './pending-writes.ts';
import { keyGroupOfStored, toBuffer } from './reader.ts';
import type { Ring, Statement } from './ring.ts';
import type { CqlSettings } from './settings.ts';

export interface WriterOptions {
  readonly ring: Ring;
  readonly settings: CqlSettings;
  readonly pending: PendingWrites;
  readonly table: string;
  readonly incarnation: number;
  readonly buckets: number;
  /** Whether a write of this key may not be sent yet. */
  readonly waits: (keyText: string) => boolean;
  readonly nowMs: () => number;
  readonly onSent: () => void;
  readonly onFailure: (error: MillraceError) => void;
  readonly telemetry: Telemetry;
}

const { Long } = cassandra.types;
const incarnationShift = 35;

/** The timestamp of the last write that an incarnation may make, in the ring's terms. */
export function lastTimestampOf(incarnation: number): InstanceType<typeof Long> {
  return Long.fromNumber(incarnation + 1)
    .shiftLeft(incarnationShift)
    .subtract(1);
}

export class Writer {
  readonly #options: WriterOptions;
  readonly #statements: { put: string; mark: string; expiring: string };
  readonly #batches: Counter;
  readonly #rows: Counter;
  #underWay = 0;
  #scheduled = false;
  #stopped = false;
  #ordinal = 0;
  #idle: Array<() => void> = [];

  constructor(options: WriterOptions) {
    this.#options = options;
    const entries = `${options.settings.keyspace}.versions`;
    const key = 'table_id = ? AND shard = ? AND bucket = ? AND key = ? AND epoch = ?';
    this.#statements = {
      put: `INSERT INTO ${entries} (table_id, shard, bucket, key, epoch, value, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
      mark: `INSERT INTO ${entries} (table_id, shard, bucket, key, epoch, expires_at) VALUES (?, ?, ?, ?, ?, ?)`,
      expiring: `UPDATE ${entries} USING TTL ? SET value = ? WHERE ${key}`,
    };
    const { metrics } = options.telemetry;
    this.#batches = metrics.counter('millrace_cql_batches_total', 'Batches of writes sent to the ring');
    this.#rows = metrics.counter('millrace_cql_rows_written_total', 'Rows in batches of writes sent to the ring');
  }

  /** Sends what may be sent, soon: the writes of one tick go together. */
  wake(): void {
    if (this.#scheduled || this.#stopped) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#send();
    });
  }

  /** Greater than those of all batches before. */
  nextTimestamp(): InstanceType<typeof Long> {
    return Long.fromNumber(this.#options.incarnation)
      .shiftLeft(incarnationShift)
      .add(++this.#ordinal);
  }

  /** Sends nothing more; resolves when nothing is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#underWay > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #send(): void {
    const { settings, pending, waits } = this.#options;
    while (!this.#stopped && this.#underWay < settings.requestsMax) {
      const taken = pending.take((settings.requestsMax - this.#underWay) * settings.batchEntriesMax, waits);
      if (taken === undefined) return;
      const [part, writes] = taken;
      for (const batch of this.#batchesOf(writes)) void this.#sendBatch(part, batch);
    }
  }

  async #sendBatch(part: WritePart, writes: readonly PendingWrite[]): Promise<void> {
    const { ring, pending, onSent, onFailure } = this.#options;
    this.#underWay++;
    this.#batches.add(1);
    this.#rows.add(writes.length);
    try {
      const statements = writes.flatMap((write) => this.#statementsOf(write, part.sequence));
      await ring.write(statements, this.nextTimestamp());
      pending.done(part, writes);
      onSent();
    } catch (error) {
      this.#stopped = true;
      onFailure(MillraceError.from(error));
    } finally {
      this.#underWay--;
      if (this.#underWay === 0) for (const resolve of this.#idle.splice(0)) resolve();
      if (!this.#stopped) this.#send();
    }
  }

  /** Rows of a partition together, as far as the limits allow. */
  #batchesOf(writes: readonly PendingWrite[]): PendingWrite[][] {
    const { batchBytesMax, batchEntriesMax } = this.#options.settings;
    const sorted = writes.toSorted((a, b) => this.#partitionOf(a) - this.#partitionOf(b));
    const batches: PendingWrite[][] = [];
    let bytes = Number.POSITIVE_INFINITY;
    for (const write of sorted) {
      const size = writeBytes(write);
      const last = batches.at(-1);
      if (last === undefined || last.length >= batchEntriesMax || bytes + size > batchBytesMax) {
        batches.push([write]);
        bytes = size;
      } else {
        last.push(write);
        bytes += size;
      }
    }
    return batches;
  }

  #partitionOf({ key }: PendingWrite): number {
    const { buckets } = this.#options;
    return keyGroupOfStored(key) * buckets + bucketOf(key, buckets);
  }

  #statementsOf({ key, value, expiresAtMs }: PendingWrite, sequence: number): readonly Statement[] {
    const { table, incarnation, buckets, settings, nowMs } = this.#options;
    const epoch = Long.fromNumber(epochOf(incarnation, sequence));
    const row = [table, keyGroupOfStored(key), bucketOf(key, buckets), toBuffer(key), epoch];
    const bytes = value === undefined ? null : toBuffer(value);
    if (bytes === null || expiresAtMs === 0) {
      return [{ query: this.#statements.put, params: [...row, bytes, Long.fromNumber(0)] }];
    }
    // The row has no time to live, only its value: an expired version must go on to hide older ones.
    const ttlSeconds = Math.max(1, Math.ceil((expiresAtMs - nowMs() + settings.ttlSlackMs) / 1000));
    return [
      { query: this.#statements.mark, params: [...row, Long.fromNumber(expiresAtMs)] },
      { query: this.#statements.expiring, params: [Math.min(ttlSeconds, ttlSecondsMax), bytes, ...row] },
    ];
  }
}

/** The ring's own limit, 20 years. */
const ttlSecondsMax = 630_720_000;
