import { compareRanges } from '@millrace/kernel';
import type { Cursor } from '../merge/cursor.ts';
import {
  entryWords,
  expiryIndex,
  expiryStride,
  keyLengthWord,
  keyStartWord,
  tombstone,
  valueLengthWord,
  valueStartWord,
} from './entry-layout.ts';
import type { MemtableView } from './memtable.ts';

/** One sorted run of a memtable's view, from `start` on. */
export class MemtableCursor implements Cursor {
  valid = false;
  readonly bytes: Uint8Array;
  keyStart = 0;
  keyEnd = 0;
  valueStart = 0;
  valueEnd = 0;
  isTombstone = false;
  expiresAtMs = 0;
  readonly #words: Int32Array;
  readonly #expiry: Float64Array;
  readonly #run: Uint32Array;
  #index: number;

  constructor(view: MemtableView, run: Uint32Array, start: Uint8Array) {
    this.bytes = view.arena;
    this.#words = view.words;
    this.#expiry = view.expiry;
    this.#run = run;
    this.#index = this.#lowerBound(start);
  }

  open(): void {
    this.#read();
  }

  next(): void {
    this.#index++;
    this.#read();
  }

  #read(): void {
    this.valid = this.#index < this.#run.length;
    if (!this.valid) return;
    const entry = this.#run[this.#index] as number;
    const at = entry * entryWords;
    const words = this.#words;
    this.keyStart = words[at + keyStartWord] as number;
    this.keyEnd = this.keyStart + (words[at + keyLengthWord] as number);
    const length = words[at + valueLengthWord] as number;
    this.isTombstone = length === tombstone;
    this.valueStart = words[at + valueStartWord] as number;
    this.valueEnd = this.valueStart + (this.isTombstone ? 0 : length);
    this.expiresAtMs = this.#expiry[entry * expiryStride + expiryIndex] as number;
  }

  #lowerBound(key: Uint8Array): number {
    let low = 0;
    let high = this.#run.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const at = (this.#run[middle] as number) * entryWords;
      const start = this.#words[at + keyStartWord] as number;
      const end = start + (this.#words[at + keyLengthWord] as number);
      if (compareRanges(this.bytes, start, end, key, 0, key.length) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Every run of a view, newest first, as a merge takes them. */
export function memtableCursors(view: MemtableView, start: Uint8Array): MemtableCursor[] {
  return view.runs.toReversed().map((run) => new MemtableCursor(view, run, start));
}
