import type { BlockCache, LsmStats } from '@millrace/lsm';
import type { Metrics } from '@millrace/telemetry';

export interface Observed {
  readonly cache: BlockCache;
  readonly stats: () => readonly LsmStats[];
}

/** Gauges over plain fields, read at collection. The result ends them. */
export function observe(metrics: Metrics, { cache, stats }: Observed): () => void {
  const sum = (pick: (stats: LsmStats) => number): number => stats().reduce((total, each) => total + pick(each), 0);
  const stops = [
    metrics.gauge('millrace_lsm_memtable_bytes', 'Memory of memtables, frozen ones included', () =>
      sum((each) => each.memtableBytes),
    ),
    metrics.gauge('millrace_lsm_memtables_frozen', 'Memtables that wait for their flush', () =>
      sum((each) => each.memtablesFrozen),
    ),
    metrics.gauge('millrace_lsm_l0_runs', 'Flushed runs that wait for compaction, of all tables', () =>
      sum((each) => each.l0Runs),
    ),
    metrics.gauge('millrace_lsm_files', 'Files that the current manifests name', () => sum((each) => each.files)),
    metrics.gauge('millrace_lsm_stored_bytes', 'Bytes of these files', () => sum((each) => each.bytesStored)),
    metrics.gauge('millrace_lsm_flush_bytes', 'Bytes flushed since the tables were opened', () =>
      sum((each) => each.flushBytes),
    ),
    metrics.gauge('millrace_lsm_compaction_bytes', 'Bytes written by compaction since the tables were opened', () =>
      sum((each) => each.compaction.bytesWritten),
    ),
    metrics.gauge('millrace_lsm_writers_waiting', 'Writers held back', () => sum((each) => each.writersWaiting)),
    metrics.gauge('millrace_lsm_block_cache_bytes', 'Blocks in memory', () => cache.bytes),
    metrics.gauge('millrace_lsm_block_cache_hits', 'Looks for a block that found it in memory', () => cache.hits),
    metrics.gauge('millrace_lsm_block_cache_misses', 'Looks for a block that did not', () => cache.misses),
    metrics.gauge('millrace_lsm_index_bytes', 'Filters and indexes in memory', () => cache.reservedBytes),
  ];
  return () => {
    for (const stop of stops) stop();
  };
}
