import { compareBytes, containsKeyGroup, type MaybePromise, MillraceError } from '@millrace/kernel';
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
  type ValueView,
  type WriteBatch,
} from '@millrace/state';
import type { TraceContext } from '@millrace/telemetry';
import { type Catalog, type Incarnation, leaseMs } from './catalog.ts';
import { keyText, type PendingWrite, PendingWrites, type WritePart, writeBytes } from './pending-writes.ts';
import { Purge } from './purge.ts';
import { type KeyRange, keyGroupOfStored, Reader, type ReadPage, type StoredRow } from './reader.ts';
import type { Ring, RingServices } from './ring.ts';
import type { CqlSettings } from './settings.ts';
import { endSpansAt, type Span } from './spans.ts';
import { Writer } from './writer.ts';

export interface CqlTableOptions extends RingServices {
  readonly spec: TableSpec;
  readonly ring: Ring;
  readonly catalog: Catalog;
  readonly settings: CqlSettings;
  readonly own: Incarnation;
  /** What the table begins with, its own layer on top. */
  readonly spans: readonly Span[];
  readonly entries: number;
  readonly restored: boolean;
  readonly claim: Claim;
  readonly onClose: () => void;
}

const pageEntriesDefault = 256;

/**
 * The shards of one subtask's key groups in the ring. Reads see writes that are still on their way, from memory; a write
 * waits for reads of the same key that were issued before it, and for scans until these have seen enough.
 */
export class CqlTable implements StateTable {
  readonly spec: TableSpec;
  readonly #options: CqlTableOptions;
  readonly #reader: Reader;
  readonly #writer: Writer;
  readonly #pending = new PendingWrites();
  readonly #purge: Purge;
  /** Keys that are being read from the ring, with how many times. */
  readonly #reading = new Map<string, number>();
  readonly #scans = new Set<readonly Span[]>();
  readonly #broken = Promise.withResolvers<never>();
  #failure: MillraceError | undefined;
  #room: PromiseWithResolvers<void> | undefined;
  #snapshotsUnderWay = 0;
  #entries: number;
  #bytesWritten = 0;
  #bytesAtSnapshot = 0;
  #closing: Promise<void> | undefined;

  constructor(options: CqlTableOptions) {
    const { spec, ring, settings, own, catalog, clock, telemetry } = options;
    this.#options = options;
    this.spec = spec;
    this.#entries = options.entries;
    this.#reader = new Reader(ring, settings);
    this.#writer = new Writer({
      ...own,
      ring,
      settings,
      telemetry,
      pending: this.#pending,
      waits: (key) => this.#reading.has(key),
      nowMs: () => clock.nowMs(),
      onSent: () => this.#checkRoom(),
      onFailure: (error) => this.#fail(error),
    });
    this.#purge = new Purge({
      ring,
      catalog,
      settings,
      own,
      job: spec.job,
      keyGroups: spec.keyGroups,
      due: options.restored,
      nowMs: () => clock.nowMs(),
      nextTimestamp: () => this.#writer.nextTimestamp(),
    });
    this.#broken.promise.catch(() => undefined);
  }

  peek(keyBytes: Uint8Array, start: number, end: number, into: ValueView): Peek {
    this.#check();
    const write = this.#pending.find(keyText(keyBytes.subarray(start, end)));
    if (write === undefined) return 'unknown';
    if (write.value === undefined || this.#hasExpired(write.expiresAtMs)) return 'absent';
    into.bytes = write.value;
    into.start = 0;
    into.end = write.value.length;
    return 'found';
  }

  multiGet(keys: PackedKeys): MaybePromise<PackedValues> {
    this.#check();
    const texts: string[] = [];
    const known = new Map<string, Uint8Array | undefined>();
    const wanted = new Map<string, Uint8Array>();
    for (let i = 0; i < keys.count; i++) {
      const key = packedItem(keys, i);
      const text = keyText(key);
      texts.push(text);
      if (known.has(text) || wanted.has(text)) continue;
      const write = this.#pending.find(text);
      if (write !== undefined) known.set(text, this.#hasExpired(write.expiresAtMs) ? undefined : write.value);
      else if (containsKeyGroup(this.spec.keyGroups, keyGroupOfStored(key))) wanted.set(text, key.slice());
    }
    const answer = (): PackedValues => packValues(texts.map((text) => known.get(text)));
    if (wanted.size === 0) return answer();
    return this.#read(wanted, known).then(answer);
  }

  write(batch: WriteBatch): MaybePromise<void> {
    this.#check();
    const writes = copyWrites(batch);
    for (const write of writes) this.#checkWrite(write);
    for (const write of writes) {
      this.#pending.put(write);
      this.#bytesWritten += writeBytes(write);
      if (write.expiresAtMs !== 0) this.#purge.sawExpiry = true;
      this.#entries += write.value === undefined ? -1 : 1;
    }
    this.#writer.wake();
    if (this.#pending.bytes <= this.#options.settings.waitingBytesMax) return undefined;
    this.#room ??= Promise.withResolvers();
    this.#room.promise.catch(() => undefined);
    return this.#room.promise;
  }

  scan({ start, end, pageEntriesMax = pageEntriesDefault }: ScanRange): AsyncIterable<ScanPage> {
    this.#check();
    const range: KeyRange = { start: start.slice(), end: end?.slice() };
    const part = this.#pending.divide();
    this.#pending.hold(part);
    const beginning = this.#beginScan(part, range, pageEntriesMax);
    beginning.catch(() => undefined); // it may never be read
    return this.#pages(beginning, range, pageEntriesMax);
  }

  snapshot(checkpoint: number, parent?: TraceContext): Promise<SnapshotHandle> {
    try {
      this.#check();
    } catch (error) {
      return Promise.reject(error as Error);
    }
    const part = this.#pending.divide();
    this.#pending.raise(part);
    const { tracer } = this.#options.telemetry;
    const attributes = { 'millrace.operator': this.spec.operator, 'millrace.checkpoint': checkpoint };
    return tracer.span('state.snapshot', { parent, attributes }, () => this.#snapshot(checkpoint, part));
  }

  stats(): TableStats {
    return {
      entriesEstimate: Math.max(0, this.#entries),
      bytesInMemory: this.#pending.bytes,
      bytesStored: this.#bytesWritten,
    };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Says that the table is open, after `silentMs` without a word. */
  async renewLease(silentMs: number): Promise<void> {
    const { catalog, own } = this.#options;
    await catalog.putLease(own.table, own.incarnation);
    // It may have been taken for dead, and its entries for nobody's.
    if (silentMs > leaseMs * 0.8) {
      this.#fail(new MillraceError('cql-lease-lost', `the lease of ${own.table} had ended before it was renewed`));
    }
  }

  /** The next part of a purge. Resolves to how many rows it removed. */
  async purge(rowsMax: number): Promise<number> {
    if (this.#failure !== undefined || this.#snapshotsUnderWay > 0) return 0;
    const frozen = endSpansAt(this.#options.spans, this.#pending.sequence - 1);
    return this.#purge.step(rowsMax, [frozen, ...this.#scans]);
  }

  /** A snapshot was released: there may be something to purge. */
  purgeSoon(): void {
    this.#purge.due = true;
  }

  async #read(wanted: ReadonlyMap<string, Uint8Array>, into: Map<string, Uint8Array | undefined>): Promise<void> {
    for (const key of wanted.keys()) this.#reading.set(key, (this.#reading.get(key) ?? 0) + 1);
    try {
      const keys = [...wanted.values()];
      const parts = await Promise.all(
        this.#options.spans.map(async (span): Promise<ReadonlyMap<string, StoredRow>> => {
          const inSpan = keys.filter((key) => containsKeyGroup(span.keyGroups, keyGroupOfStored(key)));
          return inSpan.length === 0 ? new Map() : this.#reader.get(span, inSpan);
        }),
      );
      this.#check();
      for (const part of parts) {
        for (const [key, row] of part) if (!this.#hasExpired(row.expiresAtMs)) into.set(key, row.value);
      }
    } finally {
      for (const key of wanted.keys()) {
        const left = (this.#reading.get(key) as number) - 1;
        if (left === 0) this.#reading.delete(key);
        else this.#reading.set(key, left);
      }
      this.#writer.wake();
    }
  }

  /** The first page, read while no later write is sent; if there are more, later writes get a later sequence. */
  async #beginScan(part: WritePart, range: KeyRange, rowsMax: number): Promise<[readonly Span[], ReadPage]> {
    try {
      await this.#whenFirst(part);
      const spans = endSpansAt(this.#options.spans, part.sequence);
      const page = await this.#reader.scan(spans, range, rowsMax);
      if (page.next !== undefined) {
        this.#pending.raise(part);
        this.#scans.add(spans);
      }
      return [spans, page];
    } finally {
      this.#pending.release(part);
      this.#writer.wake();
    }
  }

  async *#pages(
    beginning: Promise<[readonly Span[], ReadPage]>,
    range: KeyRange,
    entriesMax: number,
  ): AsyncGenerator<ScanPage> {
    const [spans, first] = await beginning;
    try {
      let page = first;
      for (;;) {
        this.#check();
        const live = page.rows.filter((row) => !this.#hasExpired(row.expiresAtMs));
        for (let i = 0; i < live.length; i += entriesMax) yield toPage(live.slice(i, i + entriesMax));
        if (page.next === undefined) return;
        if (range.end !== undefined && compareBytes(page.next, range.end) >= 0) return;
        page = await this.#reader.scan(spans, { start: page.next, end: range.end }, entriesMax);
      }
    } finally {
      this.#scans.delete(spans);
    }
  }

  async #snapshot(checkpoint: number, part: WritePart): Promise<SnapshotHandle> {
    const { catalog, own, spans, telemetry } = this.#options;
    const { job, operator, keyGroups, maxParallelism } = this.spec;
    this.#snapshotsUnderWay++;
    try {
      this.#writer.wake();
      await this.#whenFirst(part);
      const sequence = part.sequence - 1;
      await catalog.checkGeneration(this.spec);
      this.#check();
      const id = `${encodeURIComponent(operator)}/${checkpoint}-i${own.incarnation}-${sequence}`;
      const kept = { table: own.table, shards: maxParallelism, entries: Math.max(0, this.#entries) };
      await catalog.putSnapshot(job, id, { ...kept, spans: endSpansAt(spans, sequence) });
      const bytesPut = this.#bytesWritten - this.#bytesAtSnapshot;
      this.#bytesAtSnapshot = this.#bytesWritten;
      const data = { job, snapshot: id };
      return { store: 'cql', operator, keyGroups, data, holders: [], bytesPut, bytesLinked: 0 };
    } catch (error) {
      const failure = MillraceError.from(error);
      if (failure.kind === 'fenced') this.#fail(failure);
      telemetry.log.debug('no snapshot of a table in the ring', { error: failure.message, operator });
      throw failure;
    } finally {
      this.#snapshotsUnderWay--;
    }
  }

  /** All that lies in front of `part` is in the ring. */
  async #whenFirst(part: WritePart): Promise<void> {
    await Promise.race([this.#pending.whenFirst(part), this.#broken.promise]);
    this.#check();
  }

  #check(): void {
    if (this.#failure !== undefined) throw this.#failure;
    this.#options.claim.check();
  }

  #checkWrite({ key, value }: PendingWrite): void {
    const keyGroup = keyGroupOfStored(key);
    if (key.length < 2 || !containsKeyGroup(this.spec.keyGroups, keyGroup)) {
      throw new MillraceError('bad-argument', `key group ${keyGroup} is not one of ${this.spec.operator}'s table`);
    }
    const { valueBytesMax } = this.#options.settings;
    if (value !== undefined && value.length > valueBytesMax) {
      const message = `a value of ${this.spec.operator} has ${value.length} bytes; the ring takes ${valueBytesMax}`;
      throw new MillraceError('cql-value-too-large', message, { details: { operator: this.spec.operator } });
    }
  }

  #hasExpired(expiresAtMs: number): boolean {
    return expiresAtMs !== 0 && this.#options.clock.nowMs() >= expiresAtMs;
  }

  #checkRoom(): void {
    if (this.#room === undefined || this.#pending.bytes > this.#options.settings.waitingBytesMax / 2) return;
    this.#room.resolve();
    this.#room = undefined;
  }

  #fail(error: MillraceError): void {
    this.#failure ??= error;
    this.#broken.reject(this.#failure);
    this.#room?.reject(this.#failure);
    this.#room = undefined;
  }

  async #close(): Promise<void> {
    this.#fail(new MillraceError('state-table-closed', `the table of ${this.spec.operator} is closed`));
    await this.#writer.stop();
    this.#options.onClose();
    const { catalog, own, telemetry } = this.#options;
    try {
      await catalog.removeLease(own.table, own.incarnation);
    } catch (error) {
      // It ends by itself.
      telemetry.log.debug('the lease of a table was not removed', { error: MillraceError.from(error).message });
    }
  }
}

/** The last write of each key would do; the order of the batch is kept by putting them one after the other. */
function copyWrites(batch: WriteBatch): PendingWrite[] {
  const { bytes } = batch.arena;
  const writes: PendingWrite[] = [];
  for (let i = 0; i < batch.count; i++) {
    const key = bytes.slice(batch.keyStart(i), batch.valueStart(i));
    const value = batch.isDelete(i) ? undefined : bytes.slice(batch.valueStart(i), batch.valueEnd(i));
    writes.push({ key, keyText: keyText(key), value, expiresAtMs: batch.expiresAtMs(i) });
  }
  return writes;
}

function toPage(rows: readonly StoredRow[]): ScanPage {
  return { keys: packKeys(rows.map((row) => row.key)), values: packValues(rows.map((row) => row.value)) };
}
