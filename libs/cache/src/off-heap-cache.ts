import { assert, type Clock, copyRange, equalRanges, murmur3 } from '@millrace/kernel';

export interface OffHeapCacheOptions {
  /** For entries and hash table together. The memory is taken at the first `put`; the system gives it as it is used. */
  readonly bytesMax: number;
  readonly clock: Clock;
}

/** What the cache knows of a key: its value, that it has none, or nothing. */
export type CacheAnswer = 'found' | 'absent' | 'unknown';

/** Where `get` leaves the value it found: valid until the cache is next changed. */
export interface CachedValue {
  bytes: Uint8Array;
  start: number;
  end: number;
}

/*
 * An entry is a header of 32 bytes, the key and room for the value, in granules of 8 bytes. The header, as 32-bit words:
 * hash, owner, bytes of the key, bytes of the value (-1: known to be absent), room for the value, flags, and the expiry
 * as a float64 (epoch milliseconds, 0 for never).
 */
const headerGranules = 4;
const hashWord = 0;
const ownerWord = 1;
const keyLengthWord = 2;
const valueLengthWord = 3;
const roomWord = 4;
const flagsWord = 5;
const expiryGranule = 3;

const referenced = 1;
const dead = 2;
const absent = -1;

/** Entries that one `put` may give their second chance. */
const movesMax = 8;
/** Of the cache's bytes, that one entry may take. */
const entryShareMax = 1 / 8;
const bytesPerSlot = 128;
const slotBytes = 4;
/** A slot has 32 bits, one at least for the hash: 16 GiB of entries. */
const granulesMax = 2 ** 31 - 2;

/**
 * Keys and values in one `ArrayBuffer`, outside of the engine's heap: as many as fit into `bytesMax`, which holds at
 * every instant. A fixed hash table (open addressing, linear probing, never rehashed) finds them; they lie in a circular
 * log in order of arrival, and its oldest entry makes room for the newest, once more put in front when it was used since
 * (second chance, as in CLOCK). A value that fits where its predecessor lies is overwritten in place. Expired entries are
 * absent; nothing is swept by time.
 *
 * Several owners share it, each with a number of its own (`addOwner`), so that equal keys of theirs do not meet. What an
 * owner leaves behind ages away.
 */
export class OffHeapCache {
  readonly bytesMax: number;
  hits = 0;
  misses = 0;
  evictions = 0;
  readonly #clock: Clock;
  #owners = 0;
  #entries = 0;
  #words = new Int32Array(0);
  #bytes = new Uint8Array(0);
  #expiry = new Float64Array(0);
  /** Granule + 1, and in the bits above it the high ones of the hash; 0 marks an empty slot. */
  #slots = new Uint32Array(0);
  #mask = 0;
  #granuleBits = 0;
  #entriesMax = 0;
  #granules = 0;
  /** The log is `[tail, head)`, or `[tail, end)` and then `[0, head)` when it is wrapped. */
  #head = 0;
  #tail = 0;
  #end = 0;
  #wrapped = false;

  constructor(options: OffHeapCacheOptions) {
    assert(options.bytesMax >= 0, `bytesMax ${options.bytesMax} is negative`);
    this.bytesMax = options.bytesMax;
    this.#clock = options.clock;
  }

  get entries(): number {
    return this.#entries;
  }

  /** Bytes of memory in use: entries, live or not yet overwritten, and the hash table. */
  get bytes(): number {
    const log = this.#wrapped ? this.#end - this.#tail + this.#head : this.#head - this.#tail;
    return log * 8 + this.#slots.byteLength;
  }

  /** A number for one that keeps its entries here. */
  addOwner(): number {
    return ++this.#owners;
  }

  get(owner: number, bytes: Uint8Array, start: number, end: number, into: CachedValue): CacheAnswer {
    const slot = this.#entries === 0 ? -1 : this.#find(owner, keyHash(owner, bytes, start, end), bytes, start, end);
    if (slot < 0) {
      this.misses++;
      return 'unknown';
    }
    this.hits++;
    const granule = this.#granuleAt(slot);
    const word = granule * 2;
    const words = this.#words;
    words[word + flagsWord] = referenced;
    const length = words[word + valueLengthWord] as number;
    if (length === absent) return 'absent';
    const expiresAtMs = this.#expiry[granule + expiryGranule] as number;
    if (expiresAtMs !== 0 && expiresAtMs <= this.#clock.nowMs()) return 'absent';
    into.bytes = this.#bytes;
    into.start = (granule + headerGranules) * 8 + (words[word + keyLengthWord] as number);
    into.end = into.start + length;
    return 'found';
  }

  /** Keeps a copy of a value, `expiresAtMs` 0 meaning never; one that is too large is not kept, nor what was there. */
  put(
    owner: number,
    key: Uint8Array,
    keyStart: number,
    keyEnd: number,
    value: Uint8Array,
    valueStart: number,
    valueEnd: number,
    expiresAtMs: number,
  ): void {
    const granule = this.#place(owner, key, keyStart, keyEnd, valueEnd - valueStart);
    if (granule < 0) return;
    const word = granule * 2;
    this.#words[word + valueLengthWord] = valueEnd - valueStart;
    this.#expiry[granule + expiryGranule] = expiresAtMs;
    const to = (granule + headerGranules) * 8 + (this.#words[word + keyLengthWord] as number);
    copyRange(value, valueStart, valueEnd, this.#bytes, to);
  }

  /** Remembers that the key has no value. */
  putAbsent(owner: number, key: Uint8Array, keyStart: number, keyEnd: number): void {
    const granule = this.#place(owner, key, keyStart, keyEnd, 0);
    if (granule >= 0) this.#words[granule * 2 + valueLengthWord] = absent;
  }

  /** The granule of an entry for the key with room for the value, or -1. */
  #place(owner: number, key: Uint8Array, keyStart: number, keyEnd: number, valueBytes: number): number {
    if (this.#slots.length === 0 && !this.#allocate()) return -1;
    const hash = keyHash(owner, key, keyStart, keyEnd);
    const slot = this.#find(owner, hash, key, keyStart, keyEnd);
    if (slot >= 0) {
      const granule = this.#granuleAt(slot);
      if (valueBytes <= (this.#words[granule * 2 + roomWord] as number)) {
        this.#words[granule * 2 + flagsWord] = referenced;
        return granule;
      }
      this.#words[granule * 2 + flagsWord] = dead;
      this.#unlink(slot);
    }
    const keyBytes = keyEnd - keyStart;
    const size = headerGranules + ((keyBytes + valueBytes + 7) >>> 3);
    if (size > this.#granules * entryShareMax) return -1;
    this.#makeRoom(size);
    const granule = this.#head;
    this.#head += size;
    const word = granule * 2;
    const words = this.#words;
    words[word + hashWord] = hash;
    words[word + ownerWord] = owner;
    words[word + keyLengthWord] = keyBytes;
    words[word + roomWord] = (size - headerGranules) * 8 - keyBytes;
    words[word + flagsWord] = 0;
    copyRange(key, keyStart, keyEnd, this.#bytes, (granule + headerGranules) * 8);
    this.#link(hash, granule);
    return granule;
  }

  /** False when the budget is too small for a cache at all. */
  #allocate(): boolean {
    let slots = 16;
    while (slots * 2 * bytesPerSlot <= this.bytesMax) slots *= 2;
    const granules = Math.min(granulesMax, Math.floor((this.bytesMax - slots * slotBytes) / 8));
    if (granules < 64) return false;
    this.#slots = new Uint32Array(slots);
    this.#granuleBits = 32 - Math.clz32(granules);
    this.#mask = slots - 1;
    this.#entriesMax = Math.floor(slots * 0.75);
    const memory = new ArrayBuffer(granules * 8);
    this.#granules = granules;
    this.#words = new Int32Array(memory);
    this.#bytes = new Uint8Array(memory);
    this.#expiry = new Float64Array(memory);
    return true;
  }

  /** The slot of the key, or -1. */
  #find(owner: number, hash: number, key: Uint8Array, start: number, end: number): number {
    const slots = this.#slots;
    const words = this.#words;
    const length = end - start;
    const tag = this.#tag(hash);
    for (let slot = hash & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const held = slots[slot] as number;
      if (held === 0) return -1;
      if (held >>> this.#granuleBits !== tag) continue;
      const granule = this.#granuleAt(slot);
      const word = granule * 2;
      if (words[word + hashWord] !== hash || words[word + ownerWord] !== owner) continue;
      if (words[word + keyLengthWord] !== length) continue;
      if (equalRanges(this.#bytes, (granule + headerGranules) * 8, key, start, length)) return slot;
    }
  }

  #link(hash: number, granule: number): void {
    let slot = hash & this.#mask;
    while (this.#slots[slot] !== 0) slot = (slot + 1) & this.#mask;
    this.#set(slot, hash, granule);
    this.#entries++;
  }

  #set(slot: number, hash: number, granule: number): void {
    this.#slots[slot] = (this.#tag(hash) << this.#granuleBits) | (granule + 1);
  }

  /** As many high bits of a hash as a slot has room for. */
  #tag(hash: number): number {
    return hash >>> this.#granuleBits;
  }

  #granuleAt(slot: number): number {
    return ((this.#slots[slot] as number) & ((1 << this.#granuleBits) - 1)) - 1;
  }

  /** Empties a slot and moves those behind it up, so that no mark of a deleted one is needed. */
  #unlink(slot: number): void {
    const slots = this.#slots;
    const mask = this.#mask;
    let hole = slot;
    for (let at = (slot + 1) & mask; slots[at] !== 0; at = (at + 1) & mask) {
      const home = (this.#words[this.#granuleAt(at) * 2 + hashWord] as number) & mask;
      if (((at - home) & mask) < ((at - hole) & mask)) continue;
      slots[hole] = slots[at] as number;
      hole = at;
    }
    slots[hole] = 0;
    this.#entries--;
  }

  /** Makes `size` granules from the head on free. */
  #makeRoom(size: number): void {
    let moves = movesMax;
    while (this.#entries >= this.#entriesMax) if (this.#passTail(moves > 0)) moves--;
    for (;;) {
      if (!this.#wrapped) {
        if (this.#granules - this.#head >= size) return;
        if (this.#tail === this.#head) {
          this.#tail = 0;
          this.#head = 0;
          return;
        }
        this.#end = this.#head;
        this.#head = 0;
        this.#wrapped = true;
      }
      if (this.#tail - this.#head >= size) return;
      if (this.#passTail(moves > 0)) moves--;
    }
  }

  /** Lets the oldest entry go, or puts it in front when it was used and may move; true when it has moved. */
  #passTail(mayMove: boolean): boolean {
    const from = this.#tail;
    const word = from * 2;
    const words = this.#words;
    const size =
      headerGranules + (((words[word + keyLengthWord] as number) + (words[word + roomWord] as number)) >>> 3);
    this.#tail += size;
    if (this.#wrapped && this.#tail === this.#end) {
      this.#tail = 0;
      this.#wrapped = false;
    }
    const flags = words[word + flagsWord] as number;
    if (flags === dead) return false;
    const slot = this.#slotOf(words[word + hashWord] as number, from);
    const room = (this.#wrapped ? this.#tail : this.#granules) - this.#head;
    if (flags !== referenced || !mayMove || room < size) {
      this.#unlink(slot);
      this.evictions++;
      return false;
    }
    const to = this.#head;
    words[word + flagsWord] = 0;
    words.copyWithin(to * 2, word, word + size * 2);
    this.#set(slot, words[to * 2 + hashWord] as number, to);
    this.#head += size;
    return true;
  }

  #slotOf(hash: number, granule: number): number {
    let slot = hash & this.#mask;
    while (this.#granuleAt(slot) !== granule) slot = (slot + 1) & this.#mask;
    return slot;
  }
}

/** Signed, as typed arrays give it back. The owner is the seed. */
function keyHash(owner: number, bytes: Uint8Array, start: number, end: number): number {
  return murmur3(bytes, start, end, owner) | 0;
}
