/**
 * Sorts a memtable's entries by key, stable by age. A group of keys that agree so far is ordered by its next four
 * bytes: one gather, one native numeric sort of (bytes, position) packed into a float64, then the same for each run
 * that still ties. Long shared prefixes (key group, state id) cost a gather each and no comparison.
 */
import { compareRanges } from '@millrace/kernel';
import { entriesPerMemtableMax, entryWords, keyLengthWord, keyStartWord } from './entry-layout.ts';

const chunkBytes = 4;
/** Smaller groups are sorted by insertion with whole comparisons. */
const insertionMax = 12;

/** The entries `[from, to)` in key order; those with equal keys stay in order of age, the oldest first. */
export function sortEntries(arena: Uint8Array, words: Int32Array, from: number, to: number): Uint32Array {
  const sort = new EntrySort(arena, words, from, to);
  sort.group(0, to - from, 0);
  return sort.order;
}

class EntrySort {
  readonly order: Uint32Array;
  readonly #arena: Uint8Array;
  readonly #words: Int32Array;
  readonly #packed: Float64Array;
  readonly #copy: Uint32Array;

  constructor(arena: Uint8Array, words: Int32Array, from: number, to: number) {
    this.#arena = arena;
    this.#words = words;
    this.order = new Uint32Array(to - from);
    for (let i = 0; i < this.order.length; i++) this.order[i] = from + i;
    this.#packed = new Float64Array(to - from);
    this.#copy = new Uint32Array(to - from);
  }

  /** Sorts `order[from, to)`, whose keys agree in their first `depth` bytes. */
  group(from: number, to: number, depth: number): void {
    let at = depth;
    while (to - from > insertionMax && this.#gather(from, to, at)) {
      if (!this.#descends(from, to, at)) return;
      at += chunkBytes;
    }
    if (to - from <= insertionMax) {
      this.#insertion(from, to);
      return;
    }
    this.#distribute(from, to);
    for (let start = from; start < to; ) {
      const end = this.#runEnd(start, to);
      if (end - start > 1 && this.#descends(start, end, at)) this.group(start, end, at + chunkBytes);
      start = end;
    }
  }

  /** Packs the chunk at `depth` of each key, zero beyond its end, with the position; true when all chunks are equal. */
  #gather(from: number, to: number, depth: number): boolean {
    const arena = this.#arena;
    const words = this.#words;
    let first = -1;
    let same = true;
    for (let i = from; i < to; i++) {
      const entry = (this.order[i] as number) * entryWords;
      const start = (words[entry + keyStartWord] as number) + depth;
      const left = (words[entry + keyLengthWord] as number) - depth;
      let chunk = left > 0 ? (arena[start] as number) << 24 : 0;
      if (left > 1) chunk |= (arena[start + 1] as number) << 16;
      if (left > 2) chunk |= (arena[start + 2] as number) << 8;
      if (left > 3) chunk |= arena[start + 3] as number;
      const unsigned = chunk >>> 0;
      if (first < 0) first = unsigned;
      else if (unsigned !== first) same = false;
      this.#packed[i] = unsigned * entriesPerMemtableMax + (i - from);
    }
    return same;
  }

  #distribute(from: number, to: number): void {
    const packed = this.#packed.subarray(from, to).sort();
    this.#copy.set(this.order.subarray(from, to), from);
    for (let i = 0; i < packed.length; i++) {
      this.order[from + i] = this.#copy[from + ((packed[i] as number) % entriesPerMemtableMax)] as number;
    }
  }

  #runEnd(start: number, to: number): number {
    const chunk = Math.floor((this.#packed[start] as number) / entriesPerMemtableMax);
    const limit = (chunk + 1) * entriesPerMemtableMax;
    let end = start + 1;
    while (end < to && (this.#packed[end] as number) < limit) end++;
    return end;
  }

  /**
   * Whether keys that tie up to and with the chunk at `depth` have to be told apart by later bytes. Where some end in
   * the chunk, padding hides which: equal lengths mean equal keys, unequal ones are compared here and now.
   */
  #descends(from: number, to: number, depth: number): boolean {
    const reach = depth + chunkBytes;
    const firstLength = this.#keyLength(from);
    let ended = 0;
    let sameLength = true;
    for (let i = from; i < to; i++) {
      const length = this.#keyLength(i);
      if (length <= reach) ended++;
      if (length !== firstLength) sameLength = false;
    }
    if (ended === 0) return true;
    if (!sameLength) this.order.subarray(from, to).sort((a, b) => this.#compare(a, b));
    return false;
  }

  #keyLength(index: number): number {
    return this.#words[(this.order[index] as number) * entryWords + keyLengthWord] as number;
  }

  #insertion(from: number, to: number): void {
    const order = this.order;
    for (let i = from + 1; i < to; i++) {
      const entry = order[i] as number;
      let j = i - 1;
      while (j >= from && this.#compare(order[j] as number, entry) > 0) {
        order[j + 1] = order[j] as number;
        j--;
      }
      order[j + 1] = entry;
    }
  }

  #compare(a: number, b: number): number {
    return compareEntries(this.#arena, this.#words, a, b);
  }
}

/** Order of two entries' keys. */
export function compareEntries(arena: Uint8Array, words: Int32Array, a: number, b: number): number {
  const aStart = words[a * entryWords + keyStartWord] as number;
  const bStart = words[b * entryWords + keyStartWord] as number;
  const aEnd = aStart + (words[a * entryWords + keyLengthWord] as number);
  const bEnd = bStart + (words[b * entryWords + keyLengthWord] as number);
  return compareRanges(arena, aStart, aEnd, arena, bStart, bEnd);
}
