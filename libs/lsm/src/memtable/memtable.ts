import { copyRange, equalRanges, murmur3 } from '@millrace/kernel';
import type { ValueRef } from '../answers.ts';
import {
  entriesPerMemtableMax,
  entryBytes,
  entryWords,
  expiryIndex,
  expiryStride,
  hashWord,
  keyLengthWord,
  keyStartWord,
  tombstone,
  valueLengthWord,
  valueRoomWord,
  valueStartWord,
} from './entry-layout.ts';
import { SortedRuns } from './sorted-runs.ts';

/** Capacities to start with; a successor starts with what its predecessor needed. */
export interface MemtableSize {
  readonly arenaBytes: number;
  readonly entries: number;
}

export interface MemtableOptions {
  /** For arena, entries and hash table together. Only an entry that is larger by itself may exceed it, alone. */
  readonly bytesMax: number;
  readonly size?: MemtableSize | undefined;
  /** Memory of a predecessor that is done; in place of `size`. */
  readonly reuse?: MemtableMemory | undefined;
}

/**
 * Shared memory to be used again. The engine does not count shared memory when it decides whether to collect garbage,
 * so what is merely dropped may stay for long.
 */
export interface MemtableMemory {
  readonly arena: SharedArrayBuffer;
  readonly words: SharedArrayBuffer;
}

/** What a key has here: nothing, a live value, or a deletion or expiry that hides older versions elsewhere. */
export type MemtableAnswer = 'none' | 'found' | 'hidden';

/** The frozen content, for another thread: shared memory, nothing is copied. */
export interface MemtableContent {
  readonly arena: SharedArrayBuffer;
  readonly words: SharedArrayBuffer;
  readonly count: number;
  /** Whether a key may have several entries, the newest with the highest number. */
  readonly hasOldVersions: boolean;
}

/** A consistent view of a memtable: its entries as of one moment, in sorted runs, the oldest run first. */
export interface MemtableView {
  readonly arena: Uint8Array;
  readonly words: Int32Array;
  readonly expiry: Float64Array;
  readonly runs: readonly Uint32Array[];
  /** Ends the view; until then its entries stay as they are. Idempotent. */
  release(): void;
}

const slotWords = 2;
const slotBytes = slotWords * 4;
/** Of the budget; the rest is left to entries, so that memory used again suits small values, too. */
const arenaShareMax = 7 / 8;
const smallest: MemtableSize = { arenaBytes: 4096, entries: 128 };

/**
 * Newest versions in a hash table on typed arrays: open addressing with linear probing, entries and bytes in shared
 * memory. An overwrite that fits is done in place, unless a view is open: what a view sees is left alone and a newer
 * entry is added beside it. There is no order here until somebody scans ({@link SortedRuns}) or flushes.
 */
export class Memtable {
  readonly #bytesMax: number;
  #arena: Uint8Array<SharedArrayBuffer>;
  #arenaEnd = 0;
  #words: Int32Array<SharedArrayBuffer>;
  #expiry: Float64Array<SharedArrayBuffer>;
  #count = 0;
  /** Pairs of (entry + 1, hash); 0 marks an empty slot. */
  #slots: Int32Array;
  #mask: number;
  /** Entries below it are seen by an open view. */
  #floor = 0;
  #hasOldVersions = false;
  readonly #views = new Set<object>();
  readonly #runs = new SortedRuns();

  constructor(options: MemtableOptions) {
    this.#bytesMax = options.bytesMax;
    const { arenaBytes, entries } = options.size ?? smallest;
    this.#arena = new Uint8Array(options.reuse?.arena ?? new SharedArrayBuffer(arenaBytes));
    const words = options.reuse?.words ?? new SharedArrayBuffer(entries * entryBytes);
    this.#words = new Int32Array(words);
    this.#expiry = new Float64Array(words);
    this.#slots = new Int32Array(slotsFor(this.#words.length / entryWords) * slotWords);
    this.#mask = this.#slots.length / slotWords - 1;
  }

  /** Entries, counting versions that a view kept. */
  get count(): number {
    return this.#count;
  }

  /** Memory held, used or not. */
  get bytes(): number {
    return this.#arena.length + this.#words.byteLength + this.#slots.byteLength;
  }

  get size(): MemtableSize {
    return { arenaBytes: this.#arena.length, entries: this.#words.length / entryWords };
  }

  /** Stores a value; false when it does not fit and a successor has to take it. An empty memtable takes anything. */
  put(
    hash: number,
    bytes: Uint8Array,
    keyStart: number,
    keyEnd: number,
    valueStart: number,
    valueEnd: number,
    expiresAtMs: number,
  ): boolean {
    const entry = this.#place(hash, bytes, keyStart, keyEnd, valueEnd - valueStart);
    if (entry < 0) return false;
    const at = entry * entryWords;
    copyRange(bytes, valueStart, valueEnd, this.#arena, this.#words[at + valueStartWord] as number);
    this.#words[at + valueLengthWord] = valueEnd - valueStart;
    this.#expiry[entry * expiryStride + expiryIndex] = expiresAtMs;
    return true;
  }

  /** Stores a tombstone; as {@link put}. */
  delete(hash: number, bytes: Uint8Array, keyStart: number, keyEnd: number): boolean {
    const entry = this.#place(hash, bytes, keyStart, keyEnd, 0);
    if (entry < 0) return false;
    this.#words[entry * entryWords + valueLengthWord] = tombstone;
    this.#expiry[entry * expiryStride + expiryIndex] = 0;
    return true;
  }

  get(hash: number, bytes: Uint8Array, start: number, end: number, nowMs: number, into: ValueRef): MemtableAnswer {
    const entry = (this.#slots[this.#find(hash, bytes, start, end) * slotWords] as number) - 1;
    if (entry < 0) return 'none';
    const at = entry * entryWords;
    const length = this.#words[at + valueLengthWord] as number;
    if (length === tombstone) return 'hidden';
    const expiresAtMs = this.#expiry[entry * expiryStride + expiryIndex] as number;
    if (expiresAtMs !== 0 && expiresAtMs <= nowMs) return 'hidden';
    into.bytes = this.#arena;
    into.start = this.#words[at + valueStartWord] as number;
    into.end = into.start + length;
    return 'found';
  }

  /** As of now, in order. */
  view(): MemtableView {
    const runs = this.#runs.upTo(this.#arena, this.#words, this.#count);
    const key = {};
    this.#views.add(key);
    this.#floor = this.#count;
    const release = (): void => {
      if (this.#views.delete(key) && this.#views.size === 0) this.#floor = 0;
    };
    return { arena: this.#arena, words: this.#words, expiry: this.#expiry, runs, release };
  }

  /** For the flush, once the owner no longer writes. */
  content(): MemtableContent {
    return {
      arena: this.#arena.buffer,
      words: this.#words.buffer,
      count: this.#count,
      hasOldVersions: this.#hasOldVersions,
    };
  }

  /** Memory that a successor may have, once nobody reads this memtable any more; undefined while somebody does. */
  recycle(): MemtableMemory | undefined {
    if (this.#views.size > 0 || this.#arena.length > this.#bytesMax * arenaShareMax) return undefined;
    return { arena: this.#arena.buffer, words: this.#words.buffer };
  }

  /** The entry that takes the key's new version, with room for `valueBytes`; -1 when it does not fit. */
  #place(hash: number, bytes: Uint8Array, keyStart: number, keyEnd: number, valueBytes: number): number {
    if (this.#count === this.#words.length / entryWords && !this.#growEntries()) return -1;
    const slot = this.#find(hash, bytes, keyStart, keyEnd) * slotWords;
    const found = (this.#slots[slot] as number) - 1;
    if (found >= 0 && found >= this.#floor) {
      if ((this.#words[found * entryWords + valueRoomWord] as number) < valueBytes) {
        if (!this.#reserveArena(valueBytes)) return -1;
        this.#takeRoom(found, valueBytes);
      }
      return found;
    }
    const keyBytes = keyEnd - keyStart;
    if (!this.#reserveArena(found < 0 ? keyBytes + valueBytes : valueBytes)) return -1;
    const entry = this.#count++;
    const at = entry * entryWords;
    this.#words[at + hashWord] = hash;
    this.#words[at + keyLengthWord] = keyBytes;
    if (found < 0) {
      copyRange(bytes, keyStart, keyEnd, this.#arena, this.#arenaEnd);
      this.#words[at + keyStartWord] = this.#arenaEnd;
      this.#arenaEnd += keyBytes;
    } else {
      this.#words[at + keyStartWord] = this.#words[found * entryWords + keyStartWord] as number;
      this.#hasOldVersions = true;
    }
    this.#takeRoom(entry, valueBytes);
    this.#slots[slot] = entry + 1;
    this.#slots[slot + 1] = hash;
    return entry;
  }

  #takeRoom(entry: number, valueBytes: number): void {
    this.#words[entry * entryWords + valueStartWord] = this.#arenaEnd;
    this.#words[entry * entryWords + valueRoomWord] = valueBytes;
    this.#arenaEnd += valueBytes;
  }

  /** The slot of the key, or the empty one where it belongs. */
  #find(hash: number, bytes: Uint8Array, start: number, end: number): number {
    const slots = this.#slots;
    const words = this.#words;
    const length = end - start;
    let slot = hash & this.#mask;
    for (;;) {
      const entry = (slots[slot * slotWords] as number) - 1;
      if (entry < 0) return slot;
      if (slots[slot * slotWords + 1] === hash) {
        const at = entry * entryWords;
        const sameLength = words[at + keyLengthWord] === length;
        if (sameLength && equalRanges(this.#arena, words[at + keyStartWord] as number, bytes, start, length))
          return slot;
      }
      slot = (slot + 1) & this.#mask;
    }
  }

  #reserveArena(bytes: number): boolean {
    const needed = this.#arenaEnd + bytes;
    const held = this.#arena.length;
    if (needed <= held) return true;
    const limit = Math.min(this.#bytesMax - (this.bytes - held), this.#bytesMax * arenaShareMax);
    let capacity = Math.min(Math.max(held * 2, needed), Math.floor(limit));
    if (capacity < needed) {
      if (this.#count > 0) return false;
      capacity = needed;
    }
    const grown = new Uint8Array(new SharedArrayBuffer(capacity));
    grown.set(this.#arena.subarray(0, this.#arenaEnd));
    this.#arena = grown;
    return true;
  }

  #growEntries(): boolean {
    const capacity = (this.#words.length / entryWords) * 2;
    const slots = slotsFor(capacity);
    const bytes = this.#arena.length + capacity * entryBytes + slots * slotBytes;
    if (bytes > this.#bytesMax || capacity > entriesPerMemtableMax) return false;
    const words = new Int32Array(new SharedArrayBuffer(capacity * entryBytes));
    words.set(this.#words);
    this.#words = words;
    this.#expiry = new Float64Array(words.buffer);
    this.#rehash(slots);
    return true;
  }

  #rehash(slots: number): void {
    const old = this.#slots;
    this.#slots = new Int32Array(slots * slotWords);
    this.#mask = slots - 1;
    for (let i = 0; i < old.length; i += slotWords) {
      if (old[i] === 0) continue;
      let slot = (old[i + 1] as number) & this.#mask;
      while (this.#slots[slot * slotWords] !== 0) slot = (slot + 1) & this.#mask;
      this.#slots[slot * slotWords] = old[i] as number;
      this.#slots[slot * slotWords + 1] = old[i + 1] as number;
    }
  }
}

/** A power of two, at most five eighths full. */
function slotsFor(entries: number): number {
  let slots = 16;
  while (slots * 0.625 < entries) slots *= 2;
  return slots;
}

/** The hash that memtables and filters share, as a signed integer so that typed arrays give it back unchanged. */
export function keyHash(bytes: Uint8Array, start: number, end: number): number {
  return murmur3(bytes, start, end) | 0;
}
