import type { Reaper } from '../reaper.ts';
import type { HolderSource } from '../retention/live-holders.ts';
import { retire } from '../retention/retire.ts';
import { allPinsPrefix, pinOf } from './fork-pin.ts';
import type { JobRecords } from './job-records.ts';

export interface PinSweep {
  /** Younger pins are left alone: their fork is probably on its way. */
  readonly graceMs: number;
  readonly nowMs: number;
}

/**
 * Releases the pins in a job's namespace whose forks came to nothing: they are past the grace period, and the child's
 * record proves that the fork can never be. A pin whose child lives is the child's to release. What else such a fork wrote
 * lies in the child's namespace, whose record says by then that it is over: `eraseJob` takes it. Resolves to the number of
 * pins released.
 */
export async function sweepForkPins(
  home: HolderSource,
  reaper: Reaper,
  records: JobRecords,
  { graceMs, nowMs }: PinSweep,
): Promise<number> {
  const dropped: string[] = [];
  for await (const { path, modifiedMs } of home.dfs.list(allPinsPrefix(home.namespace))) {
    if (nowMs - modifiedMs < graceMs) continue;
    const holder = await home.holders.find(path);
    if (holder === undefined) continue;
    const { child, claim } = pinOf(path, holder);
    if (await records.isAbandoned(child, claim)) dropped.push(path);
  }
  if (dropped.length === 0) return 0;
  const { failed } = await retire(home, reaper, { dropped, live: await records.liveHolders(home.namespace.jobId) });
  return failed === 0 ? dropped.length : 0;
}
