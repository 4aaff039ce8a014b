import { MillraceError } from '@millrace/kernel';
import { type CompactionPolicy, defaultCompactionPolicy } from './compaction/picker.ts';
import { defaultTableOptions, type TableOptions } from './sst/table-info.ts';

/** Everything that bounds one {@link LsmTable}. Sizes in bytes. */
export interface LsmLimits {
  /** One memtable: arena, entries and hash table. */
  readonly memtableBytes: number;
  /** Frozen memtables from which on writers wait. In memory are at most this many, one more, and the active one. */
  readonly frozenMax: number;
  /** L0 runs from which on each batch waits a little, and from which on it waits for a compaction. */
  readonly l0RunsSlow: number;
  readonly l0RunsStop: number;
  readonly slowDownMs: number;
  /** A key is at most this long; the format allows 65,535. */
  readonly keyBytesMax: number;
  readonly valueBytesMax: number;
  /** Block reads of one table under way at once. */
  readonly readsMax: number;
  /** A page of a scan ends at this size, if not earlier. */
  readonly pageBytes: number;
  readonly tables: TableOptions;
  readonly compaction: CompactionPolicy;
}

export const defaultLsmLimits: LsmLimits = {
  memtableBytes: 16 * 1024 * 1024,
  frozenMax: 2,
  l0RunsSlow: 8,
  l0RunsStop: 16,
  slowDownMs: 5,
  keyBytesMax: 65_535,
  valueBytesMax: 64 * 1024 * 1024,
  readsMax: 64,
  pageBytes: 256 * 1024,
  tables: defaultTableOptions,
  compaction: defaultCompactionPolicy,
};

/** Rejects limits that contradict each other, with `bad-setting`. */
export function checkLsmLimits(limits: LsmLimits): LsmLimits {
  const { l0RunsSlow, l0RunsStop, compaction } = limits;
  check(limits.memtableBytes >= 16 * 1024, 'memtableBytes', limits.memtableBytes, 'at least 16384');
  check(limits.frozenMax >= 1, 'frozenMax', limits.frozenMax, 'at least 1');
  check(limits.keyBytesMax <= 65_535, 'keyBytesMax', limits.keyBytesMax, 'at most 65535');
  check(limits.valueBytesMax <= 2 ** 30, 'valueBytesMax', limits.valueBytesMax, 'at most 1073741824');
  check(limits.tables.blockBytes <= 32_768, 'tables.blockBytes', limits.tables.blockBytes, 'at most 32768');
  check(limits.tables.tableBytesMax <= 2 ** 30, 'tables.tableBytesMax', limits.tables.tableBytesMax, 'at most 1 GiB');
  check(compaction.l0Runs <= l0RunsSlow, 'compaction.l0Runs', compaction.l0Runs, 'at most l0RunsSlow');
  check(l0RunsSlow <= l0RunsStop, 'l0RunsSlow', l0RunsSlow, 'at most l0RunsStop');
  return limits;
}

function check(holds: boolean, setting: string, value: number, allowed: string): void {
  if (holds) return;
  throw new MillraceError('bad-setting', `${setting} is ${value}; allowed is ${allowed}`, {
    details: { setting, value },
  });
}
