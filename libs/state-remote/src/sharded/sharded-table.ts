import { isPending, type MaybePromise, MillraceError } from '@millrace/kernel';
import {
  type PackedKeys,
  type PackedValues,
  type Peek,
  packedItem,
  packedValue,
  packKeys,
  packValues,
  type ScanPage,
  type ScanRange,
  type SnapshotHandle,
  type StateTable,
  type TableSpec,
  type TableStats,
  type ValueView,
  WriteBatch,
} from '@millrace/state';
import type { TraceContext } from '@millrace/telemetry';
import { mergePages } from './merge-pages.ts';
import type { Placement } from './placement.ts';
import { joinHandles } from './sharded-handle.ts';

const pageEntriesDefault = 256;

/** A table whose key groups several instances serve, each with a table of its own. */
export class ShardedTable implements StateTable {
  readonly spec: TableSpec;
  readonly #placement: Placement;
  /** In the order of the placement's names. */
  #fenced: MillraceError | undefined;
  readonly #tables: readonly StateTable[];
  readonly #batches: readonly WriteBatch[];

  constructor(spec: TableSpec, placement: Placement, tables: readonly StateTable[]) {
    this.spec = spec;
    this.#placement = placement;
    this.#tables = tables;
    this.#batches = tables.map(() => new WriteBatch());
  }

  peek(keyBytes: Uint8Array, start: number, end: number, into: ValueView): Peek {
    return this.#owner(keyBytes, start).peek(keyBytes, start, end, into);
  }

  multiGet(keys: PackedKeys, parent?: TraceContext): MaybePromise<PackedValues> {
    this.#check();
    const asked = this.#tables.map((): number[] => []);
    for (let i = 0; i < keys.count; i++) {
      asked[this.#indexOf(keys.bytes, keys.offsets[i] as number)]?.push(i);
    }
    const whole = asked.findIndex((own) => own.length === keys.count);
    if (whole >= 0) return (this.#tables[whole] as StateTable).multiGet(keys, parent);
    // Asked before anything is awaited: the reads see the writes issued so far.
    const answers = asked.map((own, i) => {
      const part = packKeys(own.map((index) => packedItem(keys, index)));
      return own.length === 0 ? packValues([]) : (this.#tables[i] as StateTable).multiGet(part, parent);
    });
    return this.#joined(keys.count, asked, answers);
  }

  write(batch: WriteBatch): MaybePromise<void> {
    this.#check();
    const { bytes } = batch.arena;
    for (let i = 0; i < batch.count; i++) {
      const [keyStart, valueStart] = [batch.keyStart(i), batch.valueStart(i)];
      const part = this.#batches[this.#indexOf(bytes, keyStart)] as WriteBatch;
      part.begin();
      part.arena.raw(bytes.subarray(keyStart, valueStart));
      part.endKey();
      if (batch.isDelete(i)) {
        part.delete();
      } else {
        part.arena.raw(bytes.subarray(valueStart, batch.valueEnd(i)));
        part.put(batch.expiresAtMs(i));
      }
    }
    const writing: Promise<void>[] = [];
    for (const [i, part] of this.#batches.entries()) {
      if (part.count === 0) continue;
      const written = (this.#tables[i] as StateTable).write(part);
      part.reset();
      if (isPending(written)) writing.push(written);
    }
    return writing.length === 0 ? undefined : Promise.all(writing).then(() => undefined);
  }

  scan(range: ScanRange, parent?: TraceContext): AsyncIterable<ScanPage> {
    this.#check();
    const { start, end } = range;
    const isOneGroup = start.length > 2 && end !== undefined && end[0] === start[0] && end[1] === start[1];
    if (isOneGroup) return this.#owner(start, 0).scan(range, parent);
    const scans = this.#tables.map((table) => table.scan(range, parent));
    return mergePages(scans, range.pageEntriesMax ?? pageEntriesDefault);
  }

  async snapshot(checkpoint: number, parent?: TraceContext): Promise<SnapshotHandle> {
    this.#check();
    const snapshots = this.#tables.map((table) => table.snapshot(checkpoint, parent));
    const handles = await Promise.all(snapshots).catch((error: unknown) => this.#failed(error));
    return joinHandles(new Map(this.#placement.names.map((name, i) => [name, handles[i] as SnapshotHandle])));
  }

  stats(): TableStats {
    const all = this.#tables.map((table) => table.stats());
    const sum = (of: (stats: TableStats) => number): number => all.reduce((total, stats) => total + of(stats), 0);
    return {
      entriesEstimate: sum((stats) => stats.entriesEstimate),
      bytesInMemory: sum((stats) => stats.bytesInMemory),
      bytesStored: sum((stats) => stats.bytesStored),
    };
  }

  async close(): Promise<void> {
    await Promise.all(this.#tables.map((table) => table.close()));
  }

  #check(): void {
    if (this.#fenced !== undefined) throw this.#fenced;
  }

  /** One instance has seen a newer generation: none takes anything more of this table, whether it knows by now or not. */
  #failed(error: unknown): never {
    const failure = MillraceError.from(error);
    if (failure.kind === 'fenced') this.#fenced ??= failure;
    throw failure;
  }

  async #joined(
    count: number,
    asked: readonly (readonly number[])[],
    answers: readonly MaybePromise<PackedValues>[],
  ): Promise<PackedValues> {
    const values: (Uint8Array | undefined)[] = Array.from({ length: count });
    const parts = await Promise.all(answers.map(async (answer) => answer));
    for (const [i, packed] of parts.entries()) {
      for (const [j, index] of (asked[i] as readonly number[]).entries()) values[index] = packedValue(packed, j);
    }
    return packValues(values);
  }

  #owner(key: Uint8Array, start: number): StateTable {
    return this.#tables[this.#indexOf(key, start)] as StateTable;
  }

  /** Stored keys begin with their key group, two bytes, big-endian. */
  #indexOf(key: Uint8Array, start: number): number {
    return this.#placement.owner(((key[start] as number) << 8) | (key[start + 1] as number));
  }
}
