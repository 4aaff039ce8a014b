import { type Clock, type MaybePromise, MillraceError } from '@millrace/kernel';
import type { PackedKeys, PackedValues } from '../packed.ts';
import { packKeys, packValues } from '../packed.ts';
import type {
  Peek,
  ScanPage,
  ScanRange,
  SnapshotHandle,
  StateTable,
  TableSpec,
  TableStats,
  ValueView,
} from '../store.ts';
import type { WriteBatch } from '../write-batch.ts';
import { byteString } from './byte-string.ts';
import { packEntries } from './snapshot-data.ts';
import { type SortedEntries, type StoredEntry } from './sorted-entries.ts';

const pageEntriesDefault = 256;

/** A table of {@link MemoryStateStore}. */
export class MemoryStateTable implements StateTable {
  readonly spec: TableSpec;
  readonly #entries: SortedEntries;
  readonly #clock: Clock;
  readonly #newestGeneration: () => number;
  #closed = false;

  constructor(spec: TableSpec, entries: SortedEntries, clock: Clock, newestGeneration: () => number) {
    this.spec = spec;
    this.#entries = entries;
    this.#clock = clock;
    this.#newestGeneration = newestGeneration;
  }

  peek(keyBytes: Uint8Array, start: number, end: number, into: ValueView): Peek {
    this.#check();
    const entry = this.#live(byteString(keyBytes, start, end));
    if (entry === undefined) return 'absent';
    into.bytes = entry.value;
    into.start = 0;
    into.end = entry.value.length;
    return 'found';
  }

  multiGet(keys: PackedKeys): MaybePromise<PackedValues> {
    this.#check();
    const values: (Uint8Array | undefined)[] = [];
    for (let i = 0; i < keys.count; i++) {
      values.push(this.#live(byteString(keys.bytes, keys.offsets[i], keys.offsets[i + 1]))?.value);
    }
    return packValues(values);
  }

  write(batch: WriteBatch): MaybePromise<void> {
    this.#check();
    const { bytes } = batch.arena;
    for (let i = 0; i < batch.count; i++) {
      const keyStart = batch.keyStart(i);
      const valueStart = batch.valueStart(i);
      const key = byteString(bytes, keyStart, valueStart);
      if (batch.isDelete(i)) {
        this.#entries.delete(key);
      } else {
        this.#entries.set(key, {
          key: bytes.slice(keyStart, valueStart),
          value: bytes.slice(valueStart, batch.valueEnd(i)),
          expiresAtMs: batch.expiresAtMs(i),
        });
      }
    }
  }

  scan(range: ScanRange): AsyncIterable<ScanPage> {
    this.#check();
    const end = range.end === undefined ? undefined : byteString(range.end);
    const found = this.#liveRange(byteString(range.start), end);
    return this.#pages(found, range.pageEntriesMax ?? pageEntriesDefault);
  }

  snapshot(): Promise<SnapshotHandle> {
    try {
      this.#check();
    } catch (error) {
      return Promise.reject(error as Error);
    }
    const entries = packEntries(this.#liveRange('', undefined));
    return Promise.resolve({
      store: 'memory',
      operator: this.spec.operator,
      keyGroups: this.spec.keyGroups,
      data: { entries },
      holders: [],
      bytesPut: entries.length,
      bytesLinked: 0,
    });
  }

  stats(): TableStats {
    return { entriesEstimate: this.#entries.size, bytesInMemory: this.#entries.bytes, bytesStored: 0 };
  }

  close(): Promise<void> {
    this.#closed = true;
    return Promise.resolve();
  }

  async *#pages(found: readonly StoredEntry[], pageEntriesMax: number): AsyncGenerator<ScanPage> {
    for (let at = 0; at < found.length; at += pageEntriesMax) {
      this.#check();
      const page = found.slice(at, at + pageEntriesMax);
      yield { keys: packKeys(page.map((entry) => entry.key)), values: packValues(page.map((entry) => entry.value)) };
    }
  }

  #live(key: string): StoredEntry | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && this.#isLive(entry) ? entry : undefined;
  }

  #liveRange(start: string, end: string | undefined): StoredEntry[] {
    return this.#entries.range(start, end).filter((entry) => this.#isLive(entry));
  }

  #isLive(entry: StoredEntry): boolean {
    return entry.expiresAtMs === 0 || this.#clock.nowMs() < entry.expiresAtMs;
  }

  #check(): void {
    if (this.#closed) throw new MillraceError('state-table-closed', `the table of ${this.spec.operator} is closed`);
    const newest = this.#newestGeneration();
    if (this.spec.generation < newest) {
      throw new MillraceError(
        'state-fenced',
        `generation ${this.spec.generation} of ${this.spec.operator} is over: generation ${newest} has opened it`,
      );
    }
  }
}
