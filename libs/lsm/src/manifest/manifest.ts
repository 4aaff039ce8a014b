/**
 * The tables of one key space, as an immutable value. Restoring at another parallelism, rescaling and forking are
 * functions on it (clip, union); no table is read or written for them.
 */
import { assert, compareBytes } from '@millrace/kernel';
import type { FileRef } from '@millrace/ufs';
import type { TableInfo } from '../sst/table-info.ts';
import { intersect, type KeyRange, wholeRange } from './key-range.ts';

/** A table and the part of it that counts; what lies outside of the clip does not exist. */
export interface ManifestTable {
  readonly info: TableInfo;
  readonly clip: KeyRange;
  /** No visible key is smaller. */
  readonly start: Uint8Array;
}

/** Tables in key order whose clipped ranges do not overlap. */
export type SortedRun = readonly ManifestTable[];

export interface Manifest {
  /** Flushed memtables, newest first; they may overlap. */
  readonly l0: readonly SortedRun[];
  /** One sorted run each, L1 first; deeper is older. */
  readonly levels: readonly SortedRun[];
}

export const emptyManifest: Manifest = { l0: [], levels: [] };

export function manifestTable(info: TableInfo, clip: KeyRange = wholeRange): ManifestTable {
  return { info, clip, start: compareBytes(info.first, clip.start) >= 0 ? info.first : clip.start };
}

/** Adds a flushed run, newer than all that is there. */
export function addRun(manifest: Manifest, run: readonly TableInfo[]): Manifest {
  if (run.length === 0) return manifest;
  return { ...manifest, l0: [run.map((info) => manifestTable(info)), ...manifest.l0] };
}

export interface Replacement {
  readonly removed: ReadonlySet<ManifestTable>;
  /** 1 for L1. */
  readonly level: number;
  readonly added: readonly ManifestTable[];
}

/** Takes tables out and puts their merged content into a level. */
export function replaceTables(manifest: Manifest, { removed, level, added }: Replacement): Manifest {
  assert(level >= 1, 'only flushes add to L0');
  const keep = (run: SortedRun): SortedRun => run.filter((table) => !removed.has(table));
  const levels = manifest.levels.map(keep);
  while (levels.length < level) levels.push([]);
  levels[level - 1] = sortedRun([...(levels[level - 1] as SortedRun), ...added]);
  return { l0: manifest.l0.map(keep).filter((run) => run.length > 0), levels: withoutEmptyEnd(levels) };
}

/** What of the manifest lies in `range`. */
export function clipManifest(manifest: Manifest, range: KeyRange): Manifest {
  const clip = (run: SortedRun): SortedRun => run.flatMap((table) => clipTable(table, range) ?? []);
  return {
    l0: manifest.l0.map(clip).filter((run) => run.length > 0),
    levels: withoutEmptyEnd(manifest.levels.map(clip)),
  };
}

/** One key space of several that have no key in common. As many L0 runs as the deepest of them has, not their sum. */
export function unionManifests(manifests: readonly Manifest[]): Manifest {
  const l0Runs = Math.max(0, ...manifests.map((manifest) => manifest.l0.length));
  const levels = Math.max(0, ...manifests.map((manifest) => manifest.levels.length));
  const zip = (count: number, pick: (manifest: Manifest, i: number) => SortedRun | undefined): SortedRun[] =>
    Array.from({ length: count }, (_, i) => sortedRun(manifests.flatMap((manifest) => pick(manifest, i) ?? [])));
  return {
    l0: zip(l0Runs, (manifest, i) => manifest.l0[i]),
    levels: zip(levels, (manifest, i) => manifest.levels[i]),
  };
}

/** Every run, newest first. */
export function allRuns(manifest: Manifest): SortedRun[] {
  return [...manifest.l0, ...manifest.levels.filter((run) => run.length > 0)];
}

export function allTables(manifest: Manifest): ManifestTable[] {
  return allRuns(manifest).flat();
}

/** Each referenced file once. */
export function filesOf(manifest: Manifest): FileRef[] {
  return [...new Map(allTables(manifest).map((table) => [table.info.file.id, table.info.file])).values()];
}

/** Whether some key may be visible in both. */
export function overlap(a: ManifestTable, b: ManifestTable): boolean {
  return startsBeforeEnd(a, b) && startsBeforeEnd(b, a);
}

/** Whether `a` starts before `b` has ended. */
function startsBeforeEnd(a: ManifestTable, b: ManifestTable): boolean {
  if (compareBytes(a.start, b.info.last) > 0) return false;
  return b.clip.end === undefined || compareBytes(a.start, b.clip.end) < 0;
}

function clipTable(table: ManifestTable, range: KeyRange): ManifestTable | undefined {
  const clip = intersect(table.clip, range);
  if (clip === undefined || compareBytes(clip.start, table.info.last) > 0) return undefined;
  if (clip.end !== undefined && compareBytes(table.info.first, clip.end) >= 0) return undefined;
  return manifestTable(table.info, clip);
}

function sortedRun(tables: readonly ManifestTable[]): SortedRun {
  const run = tables.toSorted((a, b) => compareBytes(a.start, b.start));
  for (let i = 1; i < run.length; i++) {
    const before = run[i - 1] as ManifestTable;
    const after = run[i] as ManifestTable;
    assert(!overlap(before, after), `files ${before.info.file.id} and ${after.info.file.id} overlap in a sorted run`);
  }
  return run;
}

function withoutEmptyEnd(levels: readonly SortedRun[]): readonly SortedRun[] {
  return levels.slice(0, levels.findLastIndex((run) => run.length > 0) + 1);
}
