/**
 * One ordered key space over immutable files: memtables in front, tables behind. There is no log: what was written
 * after the last snapshot is lost with the process, by design, and a snapshot is an immutable manifest.
 * Calls are ordered: a read sees the writes before it and none after, a snapshot holds exactly the writes before it.
 */
import type { BlockCache } from '@millrace/cache';
import { assert, type Clock, compareBytes, type MaybePromise, MillraceError, Semaphore } from '@millrace/kernel';
import type { Telemetry, TraceContext } from '@millrace/telemetry';
import type { FileStore } from '@millrace/ufs';
import type { Answer, EntryPage, KeyList, ValueList, ValueRef } from '../answers.ts';
import type { BackgroundExecutor } from '../background/executor.ts';
import { checkLsmLimits, type LsmLimits } from '../limits.ts';
import { intersect, type KeyRange } from '../manifest/key-range.ts';
import { addRun, allTables, emptyManifest, type Manifest } from '../manifest/manifest.ts';
import { keyHash, type Memtable } from '../memtable/memtable.ts';
import { memtableCursors } from '../memtable/memtable-cursor.ts';
import { RunCursor } from '../merge/run-cursor.ts';
import { SstCursor, scanReadAhead } from '../sst/sst-cursor.ts';
import type { SstReader } from '../sst/sst-reader.ts';
import type { TableInfo } from '../sst/table-info.ts';
import { BlockFetch } from './block-fetch.ts';
import { type CompactionStats, Compactor } from './compactor.ts';
import { FlushQueue } from './flush-queue.ts';
import { scanPages } from './scan.ts';
import { ValueCollector } from './value-collector.ts';
import type { KeySlice, Missing, RunReaders, Version } from './version.ts';
import { VersionSet } from './version-set.ts';
import { WriteBuffer } from './write-buffer.ts';
import { type Pressure, WriteGate } from './write-gate.ts';

export interface LsmTableOptions {
  /** For reads; files are made and discarded by the executor. */
  readonly files: FileStore;
  readonly executor: BackgroundExecutor;
  /** Shared by the tables of a slot. */
  readonly cache: BlockCache;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly limits: LsmLimits;
  /** To start from; nothing of it is read before it is asked for. */
  readonly manifest?: Manifest;
}

export interface LsmSnapshot {
  readonly manifest: Manifest;
  /** Bytes of files that no earlier snapshot of this table names, and of those that one does. */
  readonly bytesPut: number;
  readonly bytesLinked: number;
}

export interface LsmStats {
  readonly entriesEstimate: number;
  readonly memtableBytes: number;
  readonly memtablesFrozen: number;
  /** Filters and indexes of open tables. */
  readonly indexBytes: number;
  readonly bytesStored: number;
  readonly files: number;
  readonly l0Runs: number;
  readonly flushes: number;
  readonly flushBytes: number;
  readonly writersWaiting: number;
  readonly compaction: CompactionStats;
}

export interface LsmScan extends KeyRange {
  readonly pageEntriesMax?: number | undefined;
  readonly parent?: TraceContext | undefined;
}

const pageEntriesDefault = 1024;

export class LsmTable {
  readonly #options: LsmTableOptions;
  readonly #limits: LsmLimits;
  readonly #buffer: WriteBuffer;
  readonly #versions: VersionSet;
  readonly #flushes: FlushQueue;
  readonly #compactor: Compactor;
  readonly #gate: WriteGate;
  readonly #reads: Semaphore;
  readonly #missing: Missing = { reader: undefined, block: 0 };
  readonly #key: KeySlice = { bytes: new Uint8Array(), start: 0, end: 0, hash: 0 };
  #flushCount = 0;
  #flushBytes = 0;
  #closing: Promise<void> | undefined;

  constructor(options: LsmTableOptions) {
    const { executor, clock, telemetry } = options;
    this.#options = options;
    this.#limits = checkLsmLimits(options.limits);
    this.#reads = new Semaphore(this.#limits.readsMax);
    this.#versions = new VersionSet(options.manifest ?? emptyManifest, {
      files: options.files,
      cache: options.cache,
      discard: (files) => executor.discard(files),
    });
    this.#gate = new WriteGate({ clock, slowDownMs: this.#limits.slowDownMs, pressure: () => this.#pressure() });
    this.#flushes = new FlushQueue({
      buildsMax: this.#limits.frozenMax,
      build: (memtable, parent) => this.#build(memtable, parent),
      install: (tables) => this.#install(tables),
      onFailure: (error) => this.#failed('flush', error),
    });
    this.#buffer = new WriteBuffer(this.#limits.memtableBytes, this.#limits.frozenMax + 2, (frozen, parent) =>
      this.#flushes.add(frozen, parent),
    );
    this.#compactor = new Compactor({
      versions: this.#versions,
      executor,
      policy: this.#limits.compaction,
      tables: this.#limits.tables,
      clock,
      tracer: telemetry.tracer,
      onProgress: () => this.#gate.progress(),
      onFailure: (error) => this.#failed('compaction', error),
    });
  }

  /** Stores a value; `expiresAtMs` 0 means never. The bytes are copied. After a group of writes call {@link admit}. */
  put(
    bytes: Uint8Array,
    keyStart: number,
    keyEnd: number,
    valueStart: number,
    valueEnd: number,
    expiresAtMs: number,
  ): void {
    this.#checkSize('key', keyEnd - keyStart, this.#limits.keyBytesMax);
    this.#checkSize('value', valueEnd - valueStart, this.#limits.valueBytesMax);
    assert(expiresAtMs >= 0, `an expiry of ${expiresAtMs}`);
    this.#buffer.put(bytes, keyStart, keyEnd, valueStart, valueEnd, expiresAtMs);
  }

  delete(bytes: Uint8Array, keyStart: number, keyEnd: number): void {
    this.#checkSize('key', keyEnd - keyStart, this.#limits.keyBytesMax);
    this.#buffer.delete(bytes, keyStart, keyEnd);
  }

  /** Backpressure: a promise while memtables wait for their flush or L0 for a compaction. */
  admit(): MaybePromise<void> {
    if (this.#pressure() === 'none') return undefined;
    this.#checkOpen();
    this.#flushes.pump();
    this.#compactor.look();
    return this.#gate.pass();
  }

  /** Answers from memory; fills `into` when found. */
  get(bytes: Uint8Array, start: number, end: number, into: ValueRef): Answer {
    const key = this.#key;
    key.bytes = bytes;
    key.start = start;
    key.end = end;
    key.hash = keyHash(bytes, start, end);
    const nowMs = this.#options.clock.nowMs();
    const buffered = this.#buffer.get(key, nowMs, into);
    if (buffered !== 'none') return buffered === 'found' ? 'found' : 'absent';
    return this.#versions.current.get(key, nowMs, into, this.#missing);
  }

  /** Values in the order of the keys; at once when all of them are in memory. */
  multiGet(keys: KeyList, parent?: TraceContext): MaybePromise<ValueList> {
    this.#checkOpen();
    const found = new ValueCollector(keys.count);
    const into: ValueRef = { bytes: keys.bytes, start: 0, end: 0 };
    const nowMs = this.#options.clock.nowMs();
    let rest: PendingGet | undefined;
    for (let i = 0; i < keys.count; i++) {
      const start = keys.offsets[i] as number;
      const end = keys.offsets[i + 1] as number;
      const answer = this.get(keys.bytes, start, end, into);
      if (answer === 'found') found.add(i, into);
      if (answer !== 'unknown') continue;
      rest ??= { keys: [], indexes: [], found, fetch: new BlockFetch({ reads: this.#reads, parent }), nowMs };
      const key = { bytes: keys.bytes, start, end, hash: this.#key.hash };
      wantMissing(this.#missing, this.#versions.current, key, rest.fetch);
      rest.keys.push(key);
      rest.indexes.push(i);
    }
    return rest === undefined ? found.finish() : this.#getRest(rest);
  }

  /** Lazy pages of a consistent view as of this call. The view is kept until the iteration ends. */
  scan(range: LsmScan): AsyncIterable<EntryPage> {
    this.#checkOpen();
    const views = this.#buffer.views();
    const lease = this.#versions.lease();
    const buffered = views.flatMap((view) => memtableCursors(view, range.start));
    const stored = lease.version.runs.map((run) => this.#runCursor(run, range));
    return scanPages({
      sources: [...buffered, ...stored],
      end: range.end,
      nowMs: this.#options.clock.nowMs(),
      pageEntriesMax: range.pageEntriesMax ?? pageEntriesDefault,
      pageBytes: this.#limits.pageBytes,
      release: () => {
        for (const view of views) view.release();
        lease.release();
      },
    });
  }

  /**
   * The table as of this call. The part before the promise freezes the memtable and no more; it resolves when every
   * file that the manifest names is durable. The files are from then on not this table's to remove.
   */
  snapshot(parent?: TraceContext): Promise<LsmSnapshot> {
    this.#checkOpen();
    this.#buffer.freeze(parent);
    const snapshot = this.#flushes.afterFrozen(() => this.#versions.snapshot());
    this.#flushes.pump();
    this.#compactor.look();
    return snapshot;
  }

  stats(): LsmStats {
    const { manifest } = this.#versions.current;
    const tables = allTables(manifest);
    return {
      entriesEstimate: tables.reduce((sum, { info }) => sum + info.entries - info.tombstones, this.#buffer.entries),
      memtableBytes: this.#buffer.bytes,
      memtablesFrozen: this.#buffer.frozen,
      indexBytes: this.#versions.memoryBytes,
      bytesStored: tables.reduce((sum, { info }) => sum + info.file.sizeBytes, 0),
      files: tables.length,
      l0Runs: manifest.l0.length,
      flushes: this.#flushCount,
      flushBytes: this.#flushBytes,
      writersWaiting: this.#gate.waiting,
      compaction: this.#compactor.stats,
    };
  }

  /** Resolves when no compaction is due any more. */
  compacted(): Promise<void> {
    this.#compactor.look();
    return this.#compactor.idle();
  }

  /** Loses what no snapshot holds, removes the files that no snapshot names, rejects who waits. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const reason = closedError();
    this.#gate.fail(reason);
    await Promise.all([this.#flushes.close(reason), this.#compactor.close()]);
    this.#versions.close();
  }

  async #getRest(rest: PendingGet): Promise<ValueList> {
    const { found, fetch, nowMs } = rest;
    const lease = this.#versions.lease();
    const into: ValueRef = { bytes: new Uint8Array(), start: 0, end: 0 };
    const missing: Missing = { reader: undefined, block: 0 };
    try {
      let left = rest.keys.map((_, i) => i);
      while (left.length > 0) {
        await fetch.run();
        left = left.filter((i) => {
          const key = rest.keys[i] as KeySlice;
          const answer = lease.version.get(key, nowMs, into, missing, fetch.held);
          if (answer === 'found') found.add(rest.indexes[i] as number, into);
          if (answer === 'unknown') wantMissing(missing, lease.version, key, fetch);
          return answer === 'unknown';
        });
      }
      return found.finish();
    } finally {
      lease.release();
    }
  }

  #runCursor(run: RunReaders, range: LsmScan): RunCursor {
    const cursors = run.tables.flatMap(({ info, clip }, i) => {
      const part = intersect(clip, range);
      if (part === undefined || compareBytes(info.last, part.start) < 0) return [];
      if (part.end !== undefined && compareBytes(info.first, part.end) >= 0) return [];
      const reader = run.readers[i] as SstReader;
      return [() => new SstCursor(reader, { range: part, readAhead: scanReadAhead, parent: range.parent })];
    });
    return new RunCursor(cursors);
  }

  #build(memtable: Memtable, parent: TraceContext | undefined): Promise<readonly TableInfo[]> {
    const { executor, telemetry } = this.#options;
    const attributes = { 'lsm.entries': memtable.count, 'lsm.memtable_bytes': memtable.bytes };
    return telemetry.tracer.span('lsm.flush', { parent, attributes }, async (span) => {
      const task = { content: memtable.content(), options: this.#limits.tables };
      const tables = await executor.flush(task, span.context);
      span.set({ 'lsm.bytes_written': tables.reduce((sum, table) => sum + table.file.sizeBytes, 0) });
      return tables;
    });
  }

  #install(tables: readonly TableInfo[]): void {
    this.#versions.install(addRun(this.#versions.current.manifest, tables), tables);
    this.#buffer.dropOldest();
    this.#flushCount++;
    for (const table of tables) this.#flushBytes += table.file.sizeBytes;
    this.#gate.progress();
    this.#compactor.look();
  }

  #pressure(): Pressure {
    const l0Runs = this.#versions.current.manifest.l0.length;
    if (this.#buffer.frozen > this.#limits.frozenMax || l0Runs >= this.#limits.l0RunsStop) return 'stop';
    return l0Runs >= this.#limits.l0RunsSlow ? 'slow' : 'none';
  }

  #failed(what: 'flush' | 'compaction', error: MillraceError): void {
    this.#options.telemetry.log.warn(`${what} failed`, { code: error.code, error: error.message });
    this.#gate.fail(error);
  }

  #checkSize(what: 'key' | 'value', bytes: number, limit: number): void {
    if (bytes <= limit) return;
    const message = `a ${what} of ${bytes} bytes is larger than the limit ${what}BytesMax, ${limit}`;
    throw new MillraceError('lsm-entry-too-large', message, { details: { what, bytes, limit } });
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw closedError();
  }
}

interface PendingGet {
  readonly keys: KeySlice[];
  /** Where the answer of each goes. */
  readonly indexes: number[];
  readonly found: ValueCollector;
  readonly fetch: BlockFetch;
  readonly nowMs: number;
}

function closedError(): MillraceError {
  return new MillraceError('lsm-closed', 'the table is closed');
}

/** Asks for what a lookup of the key could not go on without; with an index, for all indexes that it may still need. */
function wantMissing(missing: Missing, version: Version, key: KeySlice, fetch: BlockFetch): void {
  if (missing.block >= 0) return fetch.want(missing);
  for (const reader of version.closedReaders(key)) fetch.want({ reader, block: -1 });
}
