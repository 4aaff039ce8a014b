/**
 * What to compact next: a pure function of the manifest. Leveled, after LevelDB and RocksDB: L0 holds flushed runs, each
 * deeper level is one sorted run, `levelFactor` times as large as the one above.
 *
 * Amplification, with factor f (10) and n levels below L0: each byte is written once by its flush, about once into L1
 * and up to f / 2 + 1 times on average for each level below, so 2 + (n - 1) (f / 2 + 1) in all (state of up to
 * `levelBytes` times f, two levels: about 8). A lookup asks at most `l0Runs` + n runs, all but one of them answered by
 * their filters but for one in a hundred. Space: at most 1 / f of the bottom level is shadowed, 1.1 times the live bytes.
 */
import { compareBytes } from '@millrace/kernel';
import { type Manifest, type ManifestTable, overlap, type SortedRun } from '../manifest/manifest.ts';

export interface CompactionPolicy {
  /** L0 is merged into L1 from this many runs on. */
  readonly l0Runs: number;
  /** Size of L1; each deeper level may be `levelFactor` times larger. */
  readonly levelBytes: number;
  readonly levelFactor: number;
  /** The deepest level, which has no limit. */
  readonly levelsMax: number;
  /** A table of the bottom is rewritten when this share of it has expired, by estimate. */
  readonly expiredShare: number;
}

export const defaultCompactionPolicy: CompactionPolicy = {
  l0Runs: 4,
  levelBytes: 256 * 1024 * 1024,
  levelFactor: 10,
  levelsMax: 6,
  expiredShare: 0.5,
};

export interface Compaction {
  /** What is replaced, as runs, newest first; each with the tables that are read. */
  readonly inputs: readonly SortedRun[];
  /** Level of the output, 1 for L1. */
  readonly level: number;
  /**
   * `move`: the tables change level as they are. `drop`: all has expired and nothing is hidden beneath. `merge`: the
   * newest version of each key is written anew.
   */
  readonly kind: 'move' | 'drop' | 'merge';
  /** Nothing older lies beneath: tombstones and expired entries need not be kept. */
  readonly isBottom: boolean;
}

export function pickCompaction(manifest: Manifest, policy: CompactionPolicy, nowMs: number): Compaction | undefined {
  return (
    pickExpired(manifest, nowMs) ??
    pickL0(manifest, policy) ??
    pickLevel(manifest, policy) ??
    pickHalfExpired(manifest, policy, nowMs)
  );
}

function pickL0(manifest: Manifest, policy: CompactionPolicy): Compaction | undefined {
  if (manifest.l0.length < policy.l0Runs) return undefined;
  const upper = manifest.l0.flat();
  const beneath = within(manifest.levels[0] ?? [], hull(upper));
  const inputs = beneath.length > 0 ? [...manifest.l0, beneath] : manifest.l0;
  return { inputs, level: 1, kind: 'merge', isBottom: isBottom(manifest, [...upper, ...beneath], 1) };
}

/** The table of an overfull level that drags the fewest bytes of the next one along. */
function pickLevel(manifest: Manifest, policy: CompactionPolicy): Compaction | undefined {
  let limit = policy.levelBytes;
  for (let level = 1; level < policy.levelsMax; level++, limit *= policy.levelFactor) {
    const run = manifest.levels[level - 1] ?? [];
    if (bytesOf(run) <= limit) continue;
    const next = manifest.levels[level] ?? [];
    let best: { table: ManifestTable; beneath: SortedRun; cost: number } | undefined;
    for (const table of run) {
      const beneath = next.filter((other) => overlap(table, other));
      const cost = bytesOf(beneath) / table.info.file.sizeBytes;
      if (best === undefined || cost < best.cost) best = { table, beneath, cost };
    }
    if (best === undefined) continue;
    const { table, beneath } = best;
    if (beneath.length === 0) return { inputs: [[table]], level: level + 1, kind: 'move', isBottom: false };
    const inputs = [[table], beneath];
    return { inputs, level: level + 1, kind: 'merge', isBottom: isBottom(manifest, inputs.flat(), level + 1) };
  }
  return undefined;
}

/** A table of which nothing lives, with nothing beneath that it would have to hide. */
function pickExpired(manifest: Manifest, nowMs: number): Compaction | undefined {
  for (const [depth, table] of tablesByDepth(manifest)) {
    const { info } = table;
    const isDead = info.expiring + info.tombstones === info.entries && info.expiresMaxMs <= nowMs;
    if (isDead && !hasBeneath(manifest, table, depth)) {
      return { inputs: [[table]], level: Math.max(1, depth - manifest.l0.length + 1), kind: 'drop', isBottom: true };
    }
  }
  return undefined;
}

function pickHalfExpired(manifest: Manifest, policy: CompactionPolicy, nowMs: number): Compaction | undefined {
  for (const [depth, table] of tablesByDepth(manifest)) {
    if (depth < manifest.l0.length || expiredShare(table, nowMs) < policy.expiredShare) continue;
    if (hasBeneath(manifest, table, depth)) continue;
    return { inputs: [[table]], level: depth - manifest.l0.length + 1, kind: 'merge', isBottom: true };
  }
  return undefined;
}

/** Estimated from the first and last expiry, as if they lay evenly between. */
function expiredShare({ info }: ManifestTable, nowMs: number): number {
  if (info.expiring === 0 || nowMs < info.expiresMinMs) return 0;
  const span = info.expiresMaxMs - info.expiresMinMs;
  const passed = span === 0 ? 1 : Math.min(1, (nowMs - info.expiresMinMs) / span);
  return (passed * info.expiring) / info.entries;
}

/** Depth counts L0 runs from the newest, then levels. */
function* tablesByDepth(manifest: Manifest): Generator<readonly [number, ManifestTable]> {
  for (const [depth, run] of [...manifest.l0, ...manifest.levels].entries()) {
    for (const table of run) yield [depth, table];
  }
}

function hasBeneath(manifest: Manifest, table: ManifestTable, depth: number): boolean {
  const older = [...manifest.l0, ...manifest.levels].slice(depth + 1);
  return older.some((run) => run.some((other) => overlap(table, other)));
}

interface Hull {
  readonly start: Uint8Array;
  /** Included. */
  readonly last: Uint8Array;
}

function hull(tables: readonly ManifestTable[]): Hull {
  const starts = tables.map((table) => table.start).toSorted(compareBytes);
  const lasts = tables.map((table) => table.info.last).toSorted(compareBytes);
  return { start: starts[0] as Uint8Array, last: lasts[lasts.length - 1] as Uint8Array };
}

/** Tables that a merge over the whole hull may touch: its outputs may lie anywhere in it. */
function within(run: SortedRun, { start, last }: Hull): SortedRun {
  return run.filter((table) => compareBytes(table.start, last) <= 0 && compareBytes(start, table.info.last) <= 0);
}

function isBottom(manifest: Manifest, inputs: readonly ManifestTable[], level: number): boolean {
  const range = hull(inputs);
  return manifest.levels.slice(level).every((run) => within(run, range).length === 0);
}

function bytesOf(run: SortedRun): number {
  return run.reduce((sum, table) => sum + table.info.file.sizeBytes, 0);
}
