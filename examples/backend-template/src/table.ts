import { type Clock, compareBytes, MillraceError } from '@millrace/kernel';
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
import type { Entry, Snapshots } from './snapshots.ts';

export interface TemplateTableOptions {
  readonly spec: TableSpec;
  readonly claim: Claim;
  readonly clock: Clock;
  readonly snapshots: Snapshots;
  /** Which open of this process it is. */
  readonly open: number;
}

interface Held {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  /** 0 for never. */
  readonly expiresAtMs: number;
}

/** Stored keys begin with their key group, two bytes, big-endian. */
export function keyGroupOfStored(key: Uint8Array): number {
  return ((key[0] ?? 0) << 8) | (key[1] ?? 0);
}

/** A table in memory. Every call takes effect before it returns, which gives the order that the port asks for. */
export class TemplateTable implements StateTable {
  readonly spec: TableSpec;
  readonly #options: TemplateTableOptions;
  readonly #entries = new Map<string, Held>();
  #bytes = 0;
  #closed = false;

  constructor(options: TemplateTableOptions) {
    this.#options = options;
    this.spec = options.spec;
  }

  /** For the restore. */
  load({ key, value, expiresAtMs }: Entry): void {
    const bytes = Buffer.from(key, 'base64');
    this.#entries.set(textOf(bytes), { key: bytes, value: Buffer.from(value, 'base64'), expiresAtMs });
  }

  /** A store across a network says `unknown` of what is not in its memory. */
  peek(): Peek {
    this.#check();
    return 'unknown';
  }

  multiGet(keys: PackedKeys): PackedValues {
    this.#check();
    return packValues(Array.from({ length: keys.count }, (_, i) => this.#live(textOf(packedItem(keys, i)))?.value));
  }

  /** In the order of the batch, and with copies: the caller uses the batch again. A promise would be backpressure. */
  write(batch: WriteBatch): void {
    this.#check();
    for (let i = 0; i < batch.count; i++) {
      const key = batch.arena.bytes.slice(batch.keyStart(i), batch.valueStart(i));
      if (batch.isDelete(i)) {
        this.#entries.delete(textOf(key));
      } else {
        const value = batch.arena.bytes.slice(batch.valueStart(i), batch.valueEnd(i));
        this.#entries.set(textOf(key), { key, value, expiresAtMs: batch.expiresAtMs(i) });
      }
    }
    this.#bytes += batch.arena.position;
  }

  /** A view as of this call, not as of when it is read. */
  scan({ start, end, pageEntriesMax = 256 }: ScanRange): AsyncIterable<ScanPage> {
    this.#check();
    const found = [...this.#entries.keys()]
      .flatMap((text) => this.#live(text) ?? [])
      .filter(({ key }) => compareBytes(key, start) >= 0 && (end === undefined || compareBytes(key, end) < 0))
      .toSorted((a, b) => compareBytes(a.key, b.key));
    return pagesOf(found, pageEntriesMax, () => this.#check());
  }

  /** What is written after this call is not in it: the copy is taken before anything is awaited. */
  async snapshot(checkpoint: number): Promise<SnapshotHandle> {
    this.#check();
    const entries = [...this.#entries.values()].map(({ key, value, expiresAtMs }) => ({
      key: Buffer.from(key).toString('base64'),
      value: Buffer.from(value).toString('base64'),
      expiresAtMs,
    }));
    const { job, operator, keyGroups, generation } = this.spec;
    // No two snapshots have the same id: not those of other subtasks, attempts or opens.
    const snapshot = `${operator}/${checkpoint}-g${generation}-k${keyGroups.start}-${process.pid}-${this.#options.open}`;
    await this.#options.snapshots.put(job, snapshot, entries);
    this.#check();
    const bytes = { bytesPut: this.#bytes, bytesLinked: 0 };
    return { store: 'template', operator, keyGroups, data: { job, snapshot }, holders: [], ...bytes };
  }

  stats(): TableStats {
    return { entriesEstimate: this.#entries.size, bytesInMemory: this.#bytes, bytesStored: 0 };
  }

  close(): Promise<void> {
    this.#closed = true;
    this.#entries.clear();
    return Promise.resolve();
  }

  /** The entry as long as its time is not over. */
  #live(text: string): Held | undefined {
    const held = this.#entries.get(text);
    if (held === undefined || held.expiresAtMs === 0 || this.#options.clock.nowMs() < held.expiresAtMs) return held;
    this.#entries.delete(text);
    return undefined;
  }

  /** First in every call: closed, or older than the newest generation. */
  #check(): void {
    if (this.#closed) throw new MillraceError('state-table-closed', `the table of ${this.spec.operator} is closed`);
    this.#options.claim.check();
  }
}

// An async generator by contract: a store across a network waits for each page here.
async function* pagesOf(found: readonly Held[], entriesMax: number, check: () => void): AsyncGenerator<ScanPage> {
  for (let i = 0; i < found.length; i += entriesMax) {
    check();
    const page = found.slice(i, i + entriesMax);
    yield { keys: packKeys(page.map((one) => one.key)), values: packValues(page.map((one) => one.value)) };
  }
}

function textOf(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.length).toString('latin1');
}
