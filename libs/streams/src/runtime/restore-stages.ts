/**
 * The stages of a restore. What was in flight lies in places: between the operators of a chain, and before a chain. What
 * lies further down the graph was sent earlier, so it goes first; when a place is empty in every subtask, the place
 * before it follows. A mark on every channel ends each stage, and no channel is read beyond one before all have it.
 *
 * At an unchanged parallelism there is one stage: everything is where it was, and each channel keeps its order by itself.
 * At another one, records of a key may lie in several subtasks: those that waited between two operators go to another subtask
 * than the owner of the key, who replays the ones behind them.
 */
export interface RestoreStages {
  readonly count: number;
  /** In this one a chain lets go what waited between its operators. It has nothing to send in those before. */
  readonly links: number;
  /** In this one a chain reads what waited before it. */
  readonly inputs: number;
}

/** `chain` of `chains`, which are numbered so that producers come before their consumers. */
export function restoreStages(chain: number, chains: number, unchanged: boolean): RestoreStages {
  if (unchanged) return { count: 1, links: 0, inputs: 0 };
  const behind = chains - 1 - chain;
  return { count: 2 * chains - 1, links: 2 * behind, inputs: 2 * behind + 1 };
}
