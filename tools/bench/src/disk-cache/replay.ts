import type { Arrival, CachePolicy } from '@millrace/cache';
import type { Trace } from './trace.ts';

export interface Replayed {
  readonly reads: number;
  readonly hits: number;
  /** Bytes of whole files that were read remotely to load them. */
  readonly loadedBytes: number;
  readonly loads: number;
  readonly evictions: number;
}

/** Loads that one report of reads may start, as in the disk cache. */
const loadsMax = 2;

/** What a disk cache of `bytesMax` with this policy would have done; loads are done when they are begun. */
export function replay({ events }: Trace, policy: CachePolicy, bytesMax: number): Replayed {
  const cached = new Map<string, number>();
  const figures = { reads: 0, hits: 0, loadedBytes: 0, loads: 0, evictions: 0 };
  let used = 0;

  function put(id: string, bytes: number, how: Arrival, nowMs: number): boolean {
    if (bytes > bytesMax || cached.has(id)) return false;
    while (used + bytes > bytesMax) {
      const victim = how === 'loaded' ? policy.evict(nowMs, { id, bytes }, how) : policy.evict(nowMs);
      if (victim === undefined) return false;
      drop(victim);
      figures.evictions++;
    }
    cached.set(id, bytes);
    used += bytes;
    policy.added({ id, bytes }, how, nowMs);
    return true;
  }

  function drop(id: string): void {
    used -= cached.get(id) ?? 0;
    cached.delete(id);
  }

  function load(nowMs: number, sizes: ReadonlyMap<string, number>): void {
    let begun = 0;
    for (const { id } of policy.wanted(nowMs)) {
      const bytes = sizes.get(id);
      if (bytes === undefined || !put(id, bytes, 'loaded', nowMs)) continue;
      figures.loads++;
      figures.loadedBytes += bytes;
      if (++begun === loadsMax) return;
    }
  }

  const sizes = new Map<string, number>();
  for (const event of events) {
    const id = String(event.file);
    const nowMs = event.atMs;
    if (event.kind === 'written') put(id, event.bytes, 'written', nowMs);
    else if (event.kind === 'forgotten') {
      drop(id);
      policy.removed(id);
    } else {
      sizes.set(id, event.bytes);
      figures.reads += event.reads;
      if (cached.has(id)) figures.hits += event.reads;
      policy.accessed({ id, bytes: event.bytes }, event.reads, nowMs);
      load(nowMs, sizes);
    }
  }
  return figures;
}
