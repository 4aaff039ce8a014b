import type { Metrics } from '@millrace/telemetry';
import type { DiskCache } from './disk-cache.ts';

/** Gauges over plain fields, read at collection. The result ends them. */
export function observeDiskCache(metrics: Metrics, cache: DiskCache): () => void {
  const { stats } = cache;
  const failures = (why: keyof typeof stats.failures): (() => void) =>
    metrics.gauge(
      'millrace_disk_cache_failures',
      'What went wrong in the disk cache, by kind',
      () => stats.failures[why],
      { kind: why },
    );
  const stops = [
    metrics.gauge('millrace_disk_cache_hits', 'Reads answered by the disk cache', () => stats.hits),
    metrics.gauge('millrace_disk_cache_misses', 'Reads that went to the remote file', () => stats.misses),
    metrics.gauge('millrace_disk_cache_hit_bytes', 'Bytes read from the disk cache', () => stats.hitBytes),
    metrics.gauge('millrace_disk_cache_miss_bytes', 'Bytes read past the disk cache', () => stats.missBytes),
    metrics.gauge('millrace_disk_cache_bytes', 'Bytes on the disk', () => cache.bytes),
    metrics.gauge('millrace_disk_cache_files', 'Files on the disk', () => cache.files),
    metrics.gauge('millrace_disk_cache_written', 'Files written through as they were made', () => stats.written),
    metrics.gauge('millrace_disk_cache_refused', 'Files not written through for want of room', () => stats.refused),
    metrics.gauge('millrace_disk_cache_reloads', 'Files loaded because they were read often', () => stats.loads),
    metrics.gauge('millrace_disk_cache_reload_bytes', 'Remote bytes read for that', () => stats.loadedBytes),
    metrics.gauge('millrace_disk_cache_evictions', 'Files that made room', () => stats.evictions),
    ...(Object.keys(stats.failures) as Array<keyof typeof stats.failures>).map(failures),
  ];
  return () => {
    for (const stop of stops) stop();
  };
}
