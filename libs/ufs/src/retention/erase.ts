import { allPinsPrefix } from '../fork/fork-pin.ts';
import type { JobRecords } from '../fork/job-records.ts';
import { settleOrigins } from '../fork/settle-origins.ts';
import type { Reaper } from '../reaper.ts';
import type { HolderSource } from './live-holders.ts';
import { sweepOrphans } from './sweep.ts';

export interface EraseReport {
  readonly filesRemoved: number;
  readonly bytesFreed: number;
  /** Files that stay because forks of this job hold them; each goes with the last of these. */
  readonly filesPinned: number;
  /** Removals that did not succeed: call again. */
  readonly failed: number;
}

/**
 * Deletes everything of a job that is over but its record and what forks of it hold. Call it after the record says that
 * the job is to be gone and names no checkpoint, which no attempt can undo; it may be repeated, also to remove what a
 * zombie wrote later. Any number of forks, of and from the job, may live on.
 *
 * Crash order: what the job holds elsewhere (pins in its origins), its own holders, then files and round objects.
 */
export async function eraseJob(
  source: HolderSource,
  reaper: Reaper,
  records: Pick<JobRecords, 'liveHolders'>,
): Promise<EraseReport> {
  const { dfs, namespace } = source;
  await settleOrigins(source, reaper, records, { claim: undefined, live: [] });
  const holders: string[] = [];
  const pins = allPinsPrefix(namespace);
  for await (const { path } of dfs.list(namespace.holdersPrefix)) {
    if (!path.startsWith(pins)) holders.push(path);
  }
  const dropped = await reaper.removeNow(holders);
  const swept = await sweepOrphans(source, reaper, {
    liveHolders: [],
    liveCheckpoints: [],
    liveGeneration: Number.POSITIVE_INFINITY,
    settledCheckpoint: null,
    graceMs: 0,
    nowMs: Number.POSITIVE_INFINITY,
  });
  const { filesRemoved, bytesFreed, verdicts } = swept;
  return { filesRemoved, bytesFreed, filesPinned: verdicts.held, failed: swept.failed + dropped.failed.length };
}
