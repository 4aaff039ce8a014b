import { compareRanges } from '@millrace/kernel';
import type { ValueRef } from '../answers.ts';
import { allRuns, type Manifest, type ManifestTable, type SortedRun } from '../manifest/manifest.ts';
import type { Block } from '../sst/block.ts';
import type { SstReader } from '../sst/sst-reader.ts';

/** What a lookup could not go on without: a block of an open table, or with block -1 the table's index. */
export interface Missing {
  reader: SstReader | undefined;
  block: number;
}

/** Blocks that a read in progress keeps, whether the cache had room for them or not. */
export type HeldBlocks = ReadonlyMap<SstReader, ReadonlyMap<number, Block>>;

export interface KeySlice {
  bytes: Uint8Array;
  start: number;
  end: number;
  hash: number;
}

/** A sorted run with its readers: which table may have a key is a binary search. */
export class RunReaders {
  readonly tables: SortedRun;
  readonly readers: readonly SstReader[];

  constructor(tables: SortedRun, readers: readonly SstReader[]) {
    this.tables = tables;
    this.readers = readers;
  }

  /** The only table that may have the key, -1 when none may. */
  indexOf(key: KeySlice): number {
    let low = 0;
    let high = this.tables.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const { start } = this.tables[middle] as ManifestTable;
      if (compareRanges(start, 0, start.length, key.bytes, key.start, key.end) <= 0) low = middle + 1;
      else high = middle;
    }
    if (low === 0) return -1;
    const { info, clip } = this.tables[low - 1] as ManifestTable;
    if (compareRanges(key.bytes, key.start, key.end, info.last, 0, info.last.length) > 0) return -1;
    const end = clip.end;
    if (end !== undefined && compareRanges(key.bytes, key.start, key.end, end, 0, end.length) >= 0) return -1;
    return low - 1;
  }
}

/** A manifest with open readers. Immutable; whoever reads from it keeps it by a lease. */
export class Version {
  readonly manifest: Manifest;
  /** Newest first. */
  readonly runs: readonly RunReaders[];
  /** By file. */
  readonly readers: ReadonlyMap<string, SstReader>;

  constructor(manifest: Manifest, readerOf: (table: ManifestTable) => SstReader) {
    this.manifest = manifest;
    this.runs = allRuns(manifest).map((run) => new RunReaders(run, run.map(readerOf)));
    this.readers = new Map(this.runs.flatMap((run) => run.readers).map((reader) => [reader.info.file.id, reader]));
  }

  /** The newest version of a key, as far as what is in memory tells; `unknown` fills `missing`. */
  get(
    key: KeySlice,
    nowMs: number,
    into: ValueRef,
    missing: Missing,
    held?: HeldBlocks,
  ): 'found' | 'absent' | 'unknown' {
    for (const run of this.runs) {
      const index = run.indexOf(key);
      if (index < 0) continue;
      const reader = run.readers[index] as SstReader;
      missing.reader = reader;
      missing.block = -1;
      if (!reader.isOpen) return 'unknown';
      const number = reader.blockOf(key.hash, key.bytes, key.start, key.end);
      if (number < 0) continue;
      const block = reader.cached(number) ?? held?.get(reader)?.get(number);
      missing.block = number;
      if (block === undefined) return 'unknown';
      const answer = reader.lookUp(block, key.hash, key.bytes, key.start, key.end, nowMs, into);
      if (answer !== 'none') return answer === 'found' ? 'found' : 'absent';
    }
    return 'absent';
  }

  /**
   * Readers of the tables that may have the key and are not open, of all runs. A lookup that opens one opens the others
   * with it: across a network it would else wait for one after the other.
   */
  *closedReaders(key: KeySlice): Generator<SstReader> {
    for (const run of this.runs) {
      const reader = run.readers[run.indexOf(key)];
      if (reader !== undefined && !reader.isOpen) yield reader;
    }
  }
}
