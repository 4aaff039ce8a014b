import type { DfsEntry } from '@millrace/dfs';
import { fileOrigin } from '../file-id.ts';
import type { JobNamespace, RoundObject } from '../namespace.ts';

/** What the job's record says about who may still publish, read before anything is listed. */
export interface Standing {
  /** The newest generation claimed; `Infinity` when the job is over and no attempt runs. */
  readonly liveGeneration: number;
  /** The newest registered checkpoint of that very generation; null when it has none yet. */
  readonly settledCheckpoint: number | null;
}

export interface JudgeContext extends Standing {
  readonly namespace: JobNamespace;
  readonly nowMs: number;
  readonly graceMs: number;
  /** Ids of files that live holders name. */
  readonly held: ReadonlySet<string>;
  /** Ids of files that holders of rounds before the settled one name: see {@link judgeFile}. */
  readonly outlived: ReadonlySet<string>;
}

export type Verdict =
  /** Nothing will ever need it. */
  | 'orphan'
  /** A live holder names it. */
  | 'held'
  /** Younger than the grace period, by its id or by the store's time. */
  | 'young'
  /** An attempt that may still run could have it in use without any holder yet. */
  | 'maybe-in-use'
  /** Not written by ufs: not ours to judge. */
  | 'foreign';

/**
 * Whether a file in `files/` may be deleted. Age alone is no proof: while rounds fail, a running attempt may keep a file
 * without a holder for any time. So an unheld file past its grace is an orphan only if
 * - an older generation made it: that attempt is fenced and can register nothing any more, and what a newer one
 *   restored is held; or
 * - a round before the newest registered one of the running attempt named it and that newest one does not: it was
 *   compacted away between the two.
 */
export function judgeFile(entry: DfsEntry, context: JudgeContext): Verdict {
  const id = context.namespace.fileIdOf(entry.path);
  const origin = id === undefined ? undefined : fileOrigin(id);
  if (id === undefined || origin === undefined) return 'foreign';
  if (context.held.has(id)) return 'held';
  if (isYoung(Math.max(origin.mintedMs, entry.modifiedMs), context)) return 'young';
  return origin.generation < context.liveGeneration || context.outlived.has(id) ? 'orphan' : 'maybe-in-use';
}

/** Whether a snapshot or checkpoint object that the record does not name may be deleted. */
export function judgeRound(entry: DfsEntry, live: ReadonlySet<string>, context: RoundContext): Verdict {
  const round = context.namespace.roundOf(entry.path);
  if (round === undefined) return 'foreign';
  if (live.has(entry.path)) return 'held';
  if (isYoung(entry.modifiedMs, context)) return 'young';
  return isOver(round, context) ? 'orphan' : 'maybe-in-use';
}

export type RoundContext = Omit<JudgeContext, 'held' | 'outlived'>;

/** True when the round can no longer be registered: rounds are registered in order, by the newest generation only. */
function isOver(round: RoundObject, { liveGeneration, settledCheckpoint }: Standing): boolean {
  if (round.generation !== liveGeneration) return round.generation < liveGeneration;
  return settledCheckpoint !== null && round.checkpoint < settledCheckpoint;
}

function isYoung(bornMs: number, context: RoundContext): boolean {
  return context.nowMs - bornMs < context.graceMs;
}
