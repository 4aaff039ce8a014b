import { isPending, type MaybePromise, MillraceError } from '@millrace/kernel';
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
import type { TraceContext } from '@millrace/telemetry';
import { CallQueue } from './call-queue.ts';
import type { EngineEntry, EngineView, EngineWrite } from './engine/engine.ts';
import type { Home } from './home.ts';
import { keyGroupOfStored, type Part, startOf } from './parts.ts';
import type { KvServices } from './services.ts';
import { engineWrites, hasExpiry, liveValue } from './stored-value.ts';

export interface KvTableOptions extends KvServices {
  readonly spec: TableSpec;
  /** In order of their key groups, which together are those of `spec`. */
  readonly parts: readonly Part[];
  readonly entries: number;
  readonly home: Home;
  readonly claim: Claim;
  readonly onClose: () => Promise<void>;
}

const pageEntriesDefault = 256;
const waitingBytesMax = 16 * 1024 * 1024;
/** How long a table keeps what its databases hold of other key groups: those who have it from the same snapshot do so, too. */
const trimAfterMs = 60_000;
/** Beyond every key group. */
const keyGroupsEnd = 0xffff;
const batchBytesMax = 4 * 1024 * 1024;

/** The shards of one subtask's key groups, in one database or, after a scale-in, in a few. */
export class KvTable implements StateTable {
  readonly spec: TableSpec;
  readonly #options: KvTableOptions;
  readonly #parts: readonly Part[];
  readonly #calls: CallQueue<readonly EngineWrite[]>;
  /** Table files in the last snapshot, by part. */
  #known: readonly ReadonlySet<string>[];
  #stats: TableStats;
  readonly #openedMs: number;
  #sweepFrom: Uint8Array | undefined;
  #sawExpiry = false;
  /** False once a whole round of the sweep has met no entry that expires. */
  #mayExpire = true;
  #closing: Promise<void> | undefined;

  constructor(options: KvTableOptions) {
    this.#options = options;
    this.spec = options.spec;
    this.#parts = options.parts;
    this.#openedMs = options.clock.monotonicMs();
    this.#known = options.parts.map(() => new Set());
    this.#stats = { entriesEstimate: options.entries, bytesInMemory: 0, bytesStored: 0 };
    this.#calls = new CallQueue({ apply: (writes) => this.#apply(writes), waitingBytesMax, batchBytesMax });
  }

  peek(): Peek {
    this.#check();
    return 'unknown';
  }

  multiGet(keys: PackedKeys): MaybePromise<PackedValues> {
    this.#check();
    if (keys.count === 0) return packValues([]);
    // The caller may reuse what it gave.
    const wanted = Array.from({ length: keys.count }, (_, i) => packedItem(keys, i).slice());
    const views = this.#calls.look(() => this.#parts.map((part) => part.db.view()));
    return isPending(views) ? views.then((taken) => this.#read(wanted, taken)) : this.#read(wanted, views);
  }

  write(batch: WriteBatch): MaybePromise<void> {
    this.#check();
    if (batch.count === 0) return undefined;
    const writes = engineWrites(batch);
    for (const { key, value } of writes) {
      this.#checkKey(key);
      if (value !== undefined && hasExpiry(value)) this.#mayExpire = true;
    }
    return this.#calls.write(writes, batch.arena.position + 32 * batch.count);
  }

  scan({ start, end, pageEntriesMax = pageEntriesDefault }: ScanRange): AsyncIterable<ScanPage> {
    this.#check();
    const range = { start: start.slice(), end: end?.slice() };
    const views = this.#calls.look(() => this.#parts.map((part) => part.db.view()));
    if (isPending(views)) views.catch(() => undefined); // it may never be read
    return this.#pages(views, range, pageEntriesMax);
  }

  snapshot(checkpoint: number, parent?: TraceContext): Promise<SnapshotHandle> {
    try {
      this.#check();
    } catch (error) {
      return Promise.reject(error as Error);
    }
    const taking = this.#calls.hold(() => this.#snapshot(checkpoint, parent));
    taking.catch(() => undefined);
    return taking;
  }

  stats(): TableStats {
    return this.#stats;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /**
   * Looks at up to `entriesMax` entries, where it stopped last time, and deletes those whose time is over. Resolves to how
   * many it deleted.
   */
  async sweep(entriesMax: number): Promise<number> {
    if (this.#closing !== undefined) return 0;
    if (this.#options.clock.monotonicMs() - this.#openedMs >= trimAfterMs) await this.#trim();
    if (!this.#mayExpire) return 0;
    return this.#calls.change(() => this.#sweep(entriesMax));
  }

  /**
   * Gives up what the databases hold of other key groups, by marks: compaction then drops it. Not when the table is opened, for
   * a rescale writes nothing; but in the long run every database would carry what all of them carry.
   */
  async #trim(): Promise<void> {
    for (const part of this.#parts) {
      if (!part.holdsMore) continue;
      const { start, end } = part.keyGroups;
      await this.#calls.change(async () => {
        if (start > 0) await part.db.deleteRange(startOf(0), startOf(start));
        await part.db.deleteRange(startOf(end + 1), startOf(keyGroupsEnd));
        part.holdsMore = false;
      });
    }
  }

  async #apply(batches: readonly (readonly EngineWrite[])[]): Promise<void> {
    const writes = batches.length === 1 ? (batches[0] as readonly EngineWrite[]) : batches.flat();
    const [only] = this.#parts;
    if (this.#parts.length === 1) {
      await (only as Part).db.write(writes);
    } else {
      const split = this.#parts.map((): EngineWrite[] => []);
      for (const one of writes) (split[this.#partOf(one.key)] as EngineWrite[]).push(one);
      await Promise.all(this.#parts.map((part, i) => part.db.write(split[i] as EngineWrite[])));
    }
  }

  async #read(keys: readonly Uint8Array[], views: readonly EngineView[]): Promise<PackedValues> {
    try {
      const stored = await this.#stored(keys, views);
      this.#check();
      const nowMs = this.#options.clock.nowMs();
      return packValues(stored.map((value) => (value === undefined ? undefined : liveValue(value, nowMs))));
    } finally {
      for (const view of views) view.release();
    }
  }

  async #stored(
    keys: readonly Uint8Array[],
    views: readonly EngineView[],
  ): Promise<readonly (Uint8Array | undefined)[]> {
    const asked = this.#parts.map((): number[] => []);
    for (const [i, key] of keys.entries()) asked[this.#partOf(key)]?.push(i);
    const stored: (Uint8Array | undefined)[] = Array.from({ length: keys.length });
    await Promise.all(
      asked.map(async (own, part) => {
        if (own.length === 0) return;
        const values = await (views[part] as EngineView).get(own.map((i) => keys[i] as Uint8Array));
        for (const [j, i] of own.entries()) stored[i] = values[j];
      }),
    );
    return stored;
  }

  async *#pages(
    taken: MaybePromise<readonly EngineView[]>,
    range: { readonly start: Uint8Array; readonly end: Uint8Array | undefined },
    pageEntries: number,
  ): AsyncGenerator<ScanPage> {
    const views = await taken;
    try {
      for (const [i, { keyGroups }] of this.#parts.entries()) {
        const start = later(range.start, startOf(keyGroups.start));
        const end = earlier(range.end, startOf(keyGroups.end + 1));
        if (Buffer.compare(start, end) >= 0) continue;
        for await (const entries of (views[i] as EngineView).scan({ start, end }, pageEntries)) {
          this.#check();
          const page = this.#live(entries);
          if (page !== undefined) yield page;
          this.#check();
        }
      }
    } finally {
      for (const view of views) view.release();
    }
  }

  #live(entries: readonly EngineEntry[]): ScanPage | undefined {
    const nowMs = this.#options.clock.nowMs();
    const keys: Uint8Array[] = [];
    const values: Uint8Array[] = [];
    for (const entry of entries) {
      const value = liveValue(entry.value, nowMs);
      if (value === undefined) continue;
      keys.push(entry.key);
      values.push(value);
    }
    return keys.length === 0 ? undefined : { keys: packKeys(keys), values: packValues(values) };
  }

  #snapshot(checkpoint: number, parent: TraceContext | undefined): Promise<SnapshotHandle> {
    const { telemetry } = this.#options;
    const attributes = { 'millrace.checkpoint': checkpoint, 'millrace.operator': this.spec.operator };
    return telemetry.tracer.span('state.snapshot', { parent, attributes }, async () => {
      this.#check();
      const { spec } = this;
      const id = this.#options.home.snapshotId({ ...spec, checkpoint });
      const { bytesPut, bytesLinked } = await this.#putSnapshot(id);
      return {
        store: 'kv',
        operator: spec.operator,
        keyGroups: spec.keyGroups,
        data: { job: spec.job, snapshot: id, shards: spec.maxParallelism },
        holders: [],
        bytesPut,
        bytesLinked,
      };
    });
  }

  async #putSnapshot(id: string): Promise<{ readonly bytesPut: number; readonly bytesLinked: number }> {
    const { home, engine } = this.#options;
    const { spec } = this;
    const known: ReadonlySet<string>[] = [];
    let bytesPut = 0;
    let bytesLinked = 0;
    await home.putSnapshot(spec.job, id, async (directory) => {
      const parts = await Promise.all(
        this.#parts.map(async ({ db, keyGroups, holdsMore }, i) => {
          const name = `part-${i}`;
          const { files } = await db.checkpoint(`${directory}/${name}`);
          for (const [file, sizeBytes] of files) {
            if (this.#known[i]?.has(file) === true) bytesLinked += sizeBytes;
            else bytesPut += sizeBytes;
          }
          known[i] = new Set(files.keys());
          return { name, ...keyGroups, holdsMore };
        }),
      );
      await this.#refreshStats(bytesPut + bytesLinked);
      const entries = this.#stats.entriesEstimate;
      return { maxParallelism: spec.maxParallelism, engine: engine.name, entries, parts };
    });
    this.#known = known;
    return { bytesPut, bytesLinked };
  }

  async #refreshStats(bytesStored: number): Promise<void> {
    const all = await Promise.all(this.#parts.map((part) => part.db.stats()));
    this.#stats = {
      entriesEstimate: all.reduce((sum, one) => sum + one.entriesEstimate, 0),
      bytesInMemory: all.reduce((sum, one) => sum + one.bytesInMemory, 0),
      bytesStored,
    };
  }

  async #sweep(entriesMax: number): Promise<number> {
    const from = this.#sweepFrom ?? startOf(this.spec.keyGroups.start);
    const nowMs = this.#options.clock.nowMs();
    const expired: EngineWrite[] = [];
    let last: Uint8Array | undefined;
    let left = entriesMax;
    for (const part of this.#parts) {
      const start = later(from, startOf(part.keyGroups.start));
      const end = startOf(part.keyGroups.end + 1);
      if (left === 0 || Buffer.compare(start, end) >= 0) continue;
      const view = part.db.view();
      try {
        for await (const entries of view.scan({ start, end }, left)) {
          for (const { key, value } of entries) {
            if (hasExpiry(value)) this.#sawExpiry = true;
            if (liveValue(value, nowMs) === undefined) expired.push({ key, value: undefined });
            last = key;
          }
          left -= entries.length;
          break;
        }
      } finally {
        view.release();
      }
    }
    if (expired.length > 0) await this.#apply([expired]);
    // Less than asked for: the end of the table, and of a round.
    this.#sweepFrom = left > 0 || last === undefined ? undefined : Uint8Array.from([...last, 0]);
    if (this.#sweepFrom === undefined) {
      this.#mayExpire = this.#sawExpiry;
      this.#sawExpiry = false;
    }
    return expired.length;
  }

  async #close(): Promise<void> {
    await this.#calls.close(closed(this.spec));
    await Promise.all(this.#parts.map((part) => part.db.close()));
    await this.#options.onClose();
  }

  /** The part with the key's group; -1 when the key lies in none, as one that is too short to have a group. */
  #partOf(key: Uint8Array): number {
    if (key.length < 2) return -1;
    const keyGroup = keyGroupOfStored(key);
    return this.#parts.findIndex(({ keyGroups }) => keyGroup >= keyGroups.start && keyGroup <= keyGroups.end);
  }

  #checkKey(key: Uint8Array): void {
    if (this.#partOf(key) >= 0) return;
    const { operator, keyGroups } = this.spec;
    const text = `a key of key group ${keyGroupOfStored(key)} is none of ${operator}'s: ${keyGroups.start} to ${keyGroups.end}`;
    throw new MillraceError('bad-argument', text, { details: { operator } });
  }

  #check(): void {
    if (this.#closing !== undefined) throw closed(this.spec);
    this.#options.claim.check();
  }
}

function closed({ operator }: TableSpec): MillraceError {
  return new MillraceError('state-table-closed', `the table of ${operator} is closed`);
}

function later(a: Uint8Array, b: Uint8Array): Uint8Array {
  return Buffer.compare(a, b) >= 0 ? a : b;
}

function earlier(a: Uint8Array | undefined, b: Uint8Array): Uint8Array {
  return a === undefined || Buffer.compare(a, b) > 0 ? b : a;
}
