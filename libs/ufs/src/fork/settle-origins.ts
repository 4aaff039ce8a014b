import type { FileRef } from '../file-store.ts';
import type { Holder } from '../holder.ts';
import { Holders } from '../holders.ts';
import { JobNamespace } from '../namespace.ts';
import type { Reaper } from '../reaper.ts';
import { filesToFree } from '../retention/files-to-free.ts';
import { type HolderSource, readLiveHolders } from '../retention/live-holders.ts';
import { retire } from '../retention/retire.ts';
import { pinHolder, pinOf, pinPath, pinsPrefix } from './fork-pin.ts';
import type { JobRecords } from './job-records.ts';
import { listOrigins, type Origin } from './origin.ts';

export interface SettleRequest {
  /** The claim that made the child's record: pins of other forks of that id are let go. */
  readonly claim: string | undefined;
  /** Paths of all holders that the child's record has. Read the record first, then call. */
  readonly live: readonly string[];
}

/**
 * Lets go what a fork no longer needs of the jobs that it came from, so that a chain of forks pins no ancestor for ever:
 * a pin is replaced by one of the files that the child's live holders still name, or released when there are none.
 * What only it held is freed. Costs one listing for a job that is no fork.
 *
 * Crash order: the smaller pin, then the greater one's release, the origin when no pin is left. May be repeated and run
 * beside anything.
 */
export async function settleOrigins(
  child: HolderSource,
  reaper: Reaper,
  records: Pick<JobRecords, 'liveHolders'>,
  request: SettleRequest,
): Promise<void> {
  const origins = await listOrigins(child.dfs, child.namespace);
  if (origins.size === 0) return;
  const live = await readLiveHolders(child, request.live);
  const named = [...live.values()].flatMap((holder) => holder.files);
  for (const [path, origin] of origins) {
    let pinsLeft = 0;
    for (const home of origin.homes) {
      const needed = origin.claim === request.claim ? named.filter((file) => file.home === home) : [];
      if (await settlePin({ child, reaper, records, origin }, home, needed)) pinsLeft++;
    }
    if (pinsLeft === 0) await reaper.removeNow([path]);
  }
}

interface Settling {
  readonly child: HolderSource;
  readonly reaper: Reaper;
  readonly records: Pick<JobRecords, 'liveHolders'>;
  readonly origin: Origin;
}

/** True when a pin is left, or may be. */
async function settlePin(context: Settling, homeId: string, needed: readonly FileRef[]): Promise<boolean> {
  const { child, origin, reaper, records } = context;
  const { jobId } = child.namespace;
  const holders = new Holders(child.dfs);
  const home = { dfs: child.dfs, namespace: new JobNamespace(homeId), holders };
  const pins = await readPins(home, pinsPrefix(home.namespace, jobId, origin.claim));
  const newest = pins.at(-1);
  if (newest === undefined) return false;
  const surplus = filesToFree([newest.holder], [{ files: needed, value: null, generation: 0 }]);
  const dropped = pins.slice(0, -1).map((pin) => pin.path);
  if (surplus.length > 0 || needed.length === 0) dropped.push(newest.path);
  if (dropped.length === 0) return true;
  if (surplus.length > 0 && needed.length > 0) {
    const gone = new Set(surplus.map((file) => file.id));
    const kept = newest.holder.files.filter((file) => !gone.has(file.id));
    const pin = { child: jobId, claim: origin.claim, number: newest.number + 1 };
    await holders.put(pinPath(home.namespace, pin), pinHolder(pin, kept));
  }
  const { failed } = await retire(home, reaper, { dropped, live: await records.liveHolders(homeId) });
  return needed.length > 0 || failed > 0;
}

interface StoredPin {
  readonly path: string;
  readonly number: number;
  readonly holder: Holder;
}

/** The pins that start with `prefix`, by number. */
async function readPins({ dfs, holders }: HolderSource, prefix: string): Promise<StoredPin[]> {
  const pins: StoredPin[] = [];
  for await (const { path } of dfs.list(prefix)) {
    const holder = await holders.find(path);
    if (holder !== undefined) pins.push({ path, holder, number: pinOf(path, holder).number });
  }
  return pins.sort((a, b) => a.number - b.number);
}
