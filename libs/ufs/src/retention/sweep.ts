import type { DfsEntry } from '@millrace/dfs';
import { isKind } from '@millrace/kernel';
import type { Holder } from '../holder.ts';
import type { Reaper } from '../reaper.ts';
import { type JudgeContext, judgeFile, judgeRound, type RoundContext, type Standing, type Verdict } from './judge.ts';
import { type HolderSource, readLiveHolders } from './live-holders.ts';

export interface SweepRequest extends Standing {
  /** Paths of all holders that the job's record names. Read the record first, then call. */
  readonly liveHolders: readonly string[];
  /** Paths of the checkpoint objects that the record names; without it `checkpoints/` is left alone. */
  readonly liveCheckpoints?: readonly string[];
  /** Younger objects are left alone. Must be longer than clocks differ and than one round or fork takes. */
  readonly graceMs: number;
  /** Epoch milliseconds. */
  readonly nowMs: number;
}

export interface SweepReport {
  readonly filesRemoved: number;
  /** Snapshot and checkpoint objects. */
  readonly objectsRemoved: number;
  readonly bytesFreed: number;
  /** Removals that did not succeed; the next sweep tries again. */
  readonly failed: number;
  /** How many files and objects got which verdict. */
  readonly verdicts: Readonly<Record<Verdict, number>>;
}

/** Removed together; bounds what is held in memory of a long listing of orphans. */
const batchSize = 1_000;

/**
 * Deletes what a crash, a failed round or a failed removal left in `files/`, `snapshots/` and `checkpoints/`, each with
 * positive proof ({@link judgeFile}, {@link judgeRound}). Rejects and deletes nothing when a live holder cannot be read.
 *
 * Crash order: files first, then the round objects; a holder of the running generation stays until the files that it
 * proves to be outlived are gone. Any number of sweeps, retirements and attempts may run at the same time.
 */
export async function sweepOrphans(source: HolderSource, reaper: Reaper, request: SweepRequest): Promise<SweepReport> {
  const live = await readLiveHolders(source, request.liveHolders);
  const tally = new Tally();
  const context: RoundContext = { ...request, namespace: source.namespace };
  const rounds = await deadRounds(source, new Set(live.keys()), { context, request, tally });
  const outlived = await filesOfOutlivedRounds(source, rounds, request);
  const fileContext: JudgeContext = { ...context, held: idsOf([...live.values()]), outlived };
  await removeOrphans(source, reaper, { fileContext, tally });
  const removable = tally.failed === 0 ? rounds : rounds.filter((entry) => !isOfLiveGeneration(source, entry, request));
  await tally.remove(reaper, removable, 'objects');
  return tally.report();
}

/** The round objects that nothing will ever need. */
async function deadRounds(
  source: HolderSource,
  live: ReadonlySet<string>,
  { context, request, tally }: { context: RoundContext; request: SweepRequest; tally: Tally },
): Promise<DfsEntry[]> {
  const { namespace, dfs } = source;
  const dead: DfsEntry[] = [];
  const judge = async (prefix: string, named: ReadonlySet<string>): Promise<void> => {
    for await (const entry of dfs.list(prefix)) {
      if (tally.count(judgeRound(entry, named, context)) === 'orphan') dead.push(entry);
    }
  };
  await judge(namespace.snapshotsPrefix, live);
  if (request.liveCheckpoints !== undefined) await judge(namespace.checkpointsPrefix, new Set(request.liveCheckpoints));
  return dead;
}

async function filesOfOutlivedRounds(
  source: HolderSource,
  rounds: readonly DfsEntry[],
  standing: Standing,
): Promise<Set<string>> {
  const holders: Holder[] = [];
  for (const entry of rounds) {
    if (!entry.path.startsWith(source.namespace.snapshotsPrefix)) continue;
    if (!isOfLiveGeneration(source, entry, standing)) continue;
    const holder = await source.holders.find(entry.path).catch((error: unknown) => {
      // Damaged: it proves nothing. Its files wait for the next generation.
      if (isKind(error, 'setup')) return undefined;
      throw error;
    });
    if (holder !== undefined) holders.push(holder);
  }
  return idsOf(holders);
}

async function removeOrphans(
  { dfs, namespace }: HolderSource,
  reaper: Reaper,
  { fileContext, tally }: { fileContext: JudgeContext; tally: Tally },
): Promise<void> {
  let batch: DfsEntry[] = [];
  for await (const entry of dfs.list(namespace.filesPrefix)) {
    if (tally.count(judgeFile(entry, fileContext)) === 'orphan') batch.push(entry);
    if (batch.length < batchSize) continue;
    await tally.remove(reaper, batch, 'files');
    batch = [];
  }
  await tally.remove(reaper, batch, 'files');
}

function isOfLiveGeneration({ namespace }: HolderSource, entry: DfsEntry, { liveGeneration }: Standing): boolean {
  return namespace.roundOf(entry.path)?.generation === liveGeneration;
}

function idsOf(holders: readonly Holder[]): Set<string> {
  return new Set(holders.flatMap((holder) => holder.files.map((file) => file.id)));
}

/** Adds up what a sweep finds and does. */
class Tally {
  readonly #verdicts: Record<Verdict, number> = { orphan: 0, held: 0, young: 0, 'maybe-in-use': 0, foreign: 0 };
  readonly #removed = { files: 0, objects: 0 };
  #bytesFreed = 0;
  failed = 0;

  count(verdict: Verdict): Verdict {
    this.#verdicts[verdict]++;
    return verdict;
  }

  async remove(reaper: Reaper, entries: readonly DfsEntry[], kind: 'files' | 'objects'): Promise<void> {
    const { removed, failed } = await reaper.removeNow(entries.map((entry) => entry.path));
    const gone = new Set(removed);
    this.#removed[kind] += removed.length;
    this.failed += failed.length;
    for (const entry of entries) this.#bytesFreed += gone.has(entry.path) ? entry.sizeBytes : 0;
  }

  report(): SweepReport {
    return {
      filesRemoved: this.#removed.files,
      objectsRemoved: this.#removed.objects,
      bytesFreed: this.#bytesFreed,
      failed: this.failed,
      verdicts: this.#verdicts,
    };
  }
}
