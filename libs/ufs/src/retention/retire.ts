import type { Holder } from '../holder.ts';
import type { Reaper } from '../reaper.ts';
import { filesToFree } from './files-to-free.ts';
import { type HolderSource, readLiveHolders } from './live-holders.ts';

export interface RetireRequest {
  /** Paths of holders that the job's record no longer has, or of pins whose owner is done. */
  readonly dropped: readonly string[];
  /** Other objects that go with them: the lists of the dropped checkpoints. */
  readonly objects?: readonly string[];
  /** Paths of all holders that the record has now. */
  readonly live: readonly string[];
}

export interface RetireReport {
  readonly filesRemoved: number;
  readonly bytesFreed: number;
  /** Removals that did not succeed; what they concern stays for the sweep. */
  readonly failed: number;
}

/**
 * Deletes what only dropped checkpoints held. Call it after the record without them is durable, and only for
 * checkpoints that were registered and have a registered successor: a file of the predecessor that the successor does
 * not name was compacted away and never comes back. (A round that was never registered is different: its files may
 * still be in use. The sweep takes those.)
 *
 * Crash order: files, then holders. A crash in between leaves holders that nothing refers to, and a repeated call or
 * the sweep finds by them what is left. Idempotent: dropped holders that are gone are skipped.
 */
export async function retire(source: HolderSource, reaper: Reaper, request: RetireRequest): Promise<RetireReport> {
  const live = await readLiveHolders(source, request.live);
  const gone = request.dropped.filter((path) => !request.live.includes(path));
  // A pin that is dropped still lies among the pins.
  for (const path of gone) live.delete(path);
  const dropped: Holder[] = [];
  for (const path of gone) {
    const holder = await source.holders.find(path);
    if (holder !== undefined) dropped.push(holder);
  }
  const files = filesToFree(dropped, [...live.values()]);
  const sizes = new Map(files.map((file) => [source.namespace.filePath(file.id), file.sizeBytes]));
  const removal = await reaper.removeNow([...sizes.keys()]);
  const rest = removal.failed.length > 0 ? undefined : await reaper.removeNow([...gone, ...(request.objects ?? [])]);
  return {
    filesRemoved: removal.removed.length,
    bytesFreed: removal.removed.reduce((sum, path) => sum + (sizes.get(path) ?? 0), 0),
    failed: removal.failed.length + (rest?.failed.length ?? 0),
  };
}
