/**
 * One setting, `slotMemoryBytes`, bounds what a slot's thread may hold. The split:
 *
 * | share | what |
 * |---|---|
 * | 1/2 | the thread's JavaScript heap (`resourceLimits`); half of it is the working set of decoded state, a quarter (at most 192 MiB) is for young objects, the rest is job code, records and frames being decoded |
 * | 1/4 | block cache of the LSM (outside the heap) |
 * | 1/8 | memtables, active and being flushed (outside the heap) |
 * | 1/8 | frames of the channels, batches and buffers of files (outside the heap) |
 */
export interface SlotBudget {
  /**
   * Young and old generation of the thread's heap. A record's objects die young if the young generation holds them until
   * they are written behind; what grows old costs a pass over the whole working set.
   */
  readonly youngHeapMb: number;
  readonly oldHeapMb: number;
  readonly workingSetBytes: number;
  readonly blockCacheBytes: number;
  readonly memtableBytes: number;
}

/** Below this a slot cannot run: Node and the job's code alone take some 40 MB of heap. */
export const slotMemoryBytesMin = 128 * 1024 * 1024;

const youngHeapMbMax = 192;

export function slotBudget(slotMemoryBytes: number): SlotBudget {
  const heapMb = Math.floor(slotMemoryBytes / 2 / (1024 * 1024));
  const youngHeapMb = Math.min(youngHeapMbMax, Math.floor(heapMb / 4));
  return {
    youngHeapMb,
    oldHeapMb: heapMb - youngHeapMb,
    workingSetBytes: Math.floor(slotMemoryBytes / 4),
    blockCacheBytes: Math.floor(slotMemoryBytes / 4),
    memtableBytes: Math.floor(slotMemoryBytes / 8),
  };
}

/** The smallest memtable that is worth a file of its own. */
const memtableBytesMin = 256 * 1024;

/** The bound of one memtable where `tables` of them share the budget, each with `frozenMax` + 1 being flushed beside it. */
export function memtableBytes(budget: SlotBudget, tables: number, frozenMax: number): number {
  return Math.max(memtableBytesMin, Math.floor(budget.memtableBytes / (tables * (frozenMax + 2))));
}
