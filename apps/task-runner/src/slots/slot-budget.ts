/**
 * One setting, `slotMemoryBytes`, bounds what a slot's thread may hold. A quarter, or what small slots need more, is the
 * thread's JavaScript heap (`resourceLimits`): job code, records, and the few entries of state that are decoded. The
 * rest lies outside of it:
 *
 * | share of the rest | what |
 * |---|---|
 * | 1/3 | the working set: stored values of the keys in use |
 * | 1/3 | block cache of the LSM |
 * | 1/6 | memtables, active and being flushed |
 * | 1/6 | frames of the channels, batches and buffers of files |
 *
 * With tables in state-services there are neither blocks nor memtables here: the working set has half of the rest and the keys
 * that exist (the existence filter) a third.
 */
export interface SlotBudget {
  /** Young and old generation of the thread's heap. */
  readonly youngHeapMb: number;
  readonly oldHeapMb: number;
  readonly workingSetBytes: number;
  readonly existenceBytes: number;
  readonly blockCacheBytes: number;
  readonly memtableBytes: number;
}

/** Below this a slot cannot run: Node and the job's code alone take some 40 MB of heap. */
export const slotMemoryBytesMin = 128 * 1024 * 1024;

/** A larger young generation is written through faster than the processor's caches follow. */
const youngHeapMbMax = 48;
const heapMbMin = 96;

export function slotBudget(slotMemoryBytes: number, isRemote = false): SlotBudget {
  const slotMb = slotMemoryBytes / (1024 * 1024);
  const heapMb = Math.floor(Math.max(slotMb / 4, Math.min(slotMb / 2, heapMbMin)));
  const youngHeapMb = Math.min(youngHeapMbMax, Math.floor(heapMb / 4));
  const rest = slotMemoryBytes - heapMb * 1024 * 1024;
  return {
    youngHeapMb,
    oldHeapMb: heapMb - youngHeapMb,
    workingSetBytes: Math.floor(isRemote ? rest / 2 : rest / 3),
    existenceBytes: isRemote ? Math.floor(rest / 3) : 0,
    blockCacheBytes: isRemote ? 0 : Math.floor(rest / 3),
    memtableBytes: isRemote ? 0 : Math.floor(rest / 6),
  };
}

/** The smallest memtable that is worth a file of its own. */
const memtableBytesMin = 256 * 1024;

/** The bound of one memtable where `tables` of them share the budget, each with `frozenMax` + 1 being flushed beside it. */
export function memtableBytes(budget: SlotBudget, tables: number, frozenMax: number): number {
  return Math.max(memtableBytesMin, Math.floor(budget.memtableBytes / (tables * (frozenMax + 2))));
}
