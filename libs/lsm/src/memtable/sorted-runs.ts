import { compareEntries, sortEntries } from './sort-entries.ts';

/**
 * Order for a hash table, made only when somebody scans: sorted runs of entries, oldest first, each over a contiguous
 * span of ages. A scan sorts what came since the last one and merges neighbours of similar size, so that an entry is
 * merged O(log n) times and there are O(log n) runs. Published runs never change.
 */
export class SortedRuns {
  #runs: readonly Uint32Array[] = [];
  #sorted = 0;

  /**
   * Runs over the entries `[0, count)`. A later run's version of a key is the newer one. Within a run keys are unique:
   * the memtable adds a second entry for a key only beside one that an earlier call has sorted.
   */
  upTo(arena: Uint8Array, words: Int32Array, count: number): readonly Uint32Array[] {
    if (count === this.#sorted) return this.#runs;
    const runs = [...this.#runs, sortEntries(arena, words, this.#sorted, count)];
    while (runs.length > 1) {
      const last = runs[runs.length - 1] as Uint32Array;
      const before = runs[runs.length - 2] as Uint32Array;
      if (before.length >= last.length * 2) break;
      runs.splice(runs.length - 2, 2, mergeRuns(arena, words, before, last));
    }
    this.#runs = runs;
    this.#sorted = count;
    return runs;
  }
}

/** Of equal neighbours keeps the last, which is the newest in what {@link sortEntries} returns. */
export function newestOnly(arena: Uint8Array, words: Int32Array, order: Uint32Array): Uint32Array {
  let write = 0;
  for (let i = 0; i < order.length; i++) {
    const entry = order[i] as number;
    if (i + 1 < order.length && compareEntries(arena, words, entry, order[i + 1] as number) === 0) continue;
    order[write++] = entry;
  }
  return write === order.length ? order : order.slice(0, write);
}

function mergeRuns(arena: Uint8Array, words: Int32Array, older: Uint32Array, newer: Uint32Array): Uint32Array {
  const merged = new Uint32Array(older.length + newer.length);
  let i = 0;
  let j = 0;
  let write = 0;
  while (i < older.length && j < newer.length) {
    const order = compareEntries(arena, words, older[i] as number, newer[j] as number);
    if (order < 0) merged[write++] = older[i++] as number;
    else {
      if (order === 0) i++;
      merged[write++] = newer[j++] as number;
    }
  }
  while (i < older.length) merged[write++] = older[i++] as number;
  while (j < newer.length) merged[write++] = newer[j++] as number;
  return write === merged.length ? merged : merged.slice(0, write);
}
