import { copyRange, equalRanges } from '@millrace/kernel';

/*
 * An entry is a header of 16 bytes and the key, in granules of 8 bytes. The header, as 32-bit words: hash, tag, bytes of
 * the key, expiry in the owner's units (`never` for none). A negative length marks an entry that is not linked any more.
 */
const headerGranules = 2;
const tagWord = 1;
const lengthWord = 2;
const expiryWord = 3;

export const never = 0xffff_ffff;

/** Memory is split so that the table of slots is full when the log is, at keys of some twenty bytes. */
const bytesPerSlot = 32;
const slotBytes = 4;
const loadMax = 0.8;
/** Of the log, that one key may take. */
const entryShareMax = 1 / 64;

/** Decides for each entry that the hand passes whether it has to stay. */
export type StaysUntil = (tag: number, expiry: number) => boolean;

/**
 * A set of keys in one `ArrayBuffer`, each with a tag of its owner and an expiry. A fixed hash table (open addressing,
 * linear probing, never rehashed) finds them; they lie in a circular log. When the log is full its tail is passed: an entry
 * that must stay moves to the head, one that need not is forgotten, so that every free byte is found in one round.
 */
export class KeyLog {
  readonly bytesMax: number;
  #entries = 0;
  readonly #granules: number;
  readonly #slotCount: number;
  readonly #entriesMax: number;
  #words = new Int32Array(0);
  #expiry = new Uint32Array(0);
  #bytes = new Uint8Array(0);
  /** Granule + 1; 0 marks an empty slot. */
  #slots = new Uint32Array(0);
  /** The log is `[tail, head)`, or `[tail, end)` and then `[0, head)` when it is wrapped. */
  #head = 0;
  #tail = 0;
  #end = 0;
  #wrapped = false;

  /** Memory is taken with the first key. */
  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
    this.#slotCount = Math.floor(bytesMax / bytesPerSlot);
    this.#entriesMax = Math.floor(this.#slotCount * loadMax);
    this.#granules = Math.floor((bytesMax - this.#slotCount * slotBytes) / 8);
  }

  /** Keys that are linked, whether anybody still wants them or not. */
  get entries(): number {
    return this.#entries;
  }

  /** Memory in use: entries, wanted or not, and the table. */
  get bytes(): number {
    return this.#used() * 8 + this.#slots.byteLength;
  }

  /** The entry of a key, or -1. It is valid until the next `insert`. */
  find(hash: number, tag: number, key: Uint8Array, start: number, end: number): number {
    if (this.#entries === 0) return -1;
    const slot = this.#slotOfKey(hash, tag, key, start, end);
    return slot < 0 ? -1 : (this.#slots[slot] as number) - 1;
  }

  expiryOf(entry: number): number {
    return this.#expiry[entry * 2 + expiryWord] as number;
  }

  setExpiry(entry: number, expiry: number): void {
    this.#expiry[entry * 2 + expiryWord] = expiry;
  }

  /** Adds a key that is not there; false when no room can be made. */
  insert(
    hash: number,
    tag: number,
    key: Uint8Array,
    start: number,
    end: number,
    expiry: number,
    stays: StaysUntil,
  ): boolean {
    const size = headerGranules + ((end - start + 7) >>> 3);
    if (size > this.#granules * entryShareMax || !this.#makeRoom(size, stays)) return false;
    if (this.#slots.length === 0) this.#allocate();
    const entry = this.#head;
    this.#head += size;
    const word = entry * 2;
    this.#words[word] = hash;
    this.#words[word + tagWord] = tag;
    this.#words[word + lengthWord] = end - start;
    this.#expiry[word + expiryWord] = expiry;
    copyRange(key, start, end, this.#bytes, (entry + headerGranules) * 8);
    let slot = this.#home(hash);
    while (this.#slots[slot] !== 0) slot = this.#next(slot);
    this.#slots[slot] = entry + 1;
    this.#entries++;
    return true;
  }

  remove(hash: number, tag: number, key: Uint8Array, start: number, end: number): void {
    if (this.#entries === 0) return;
    const slot = this.#slotOfKey(hash, tag, key, start, end);
    if (slot < 0) return;
    const word = ((this.#slots[slot] as number) - 1) * 2;
    this.#words[word + lengthWord] = ~(this.#words[word + lengthWord] as number);
    this.#unlink(slot);
  }

  #allocate(): void {
    const memory = new ArrayBuffer(this.#granules * 8);
    this.#words = new Int32Array(memory);
    this.#expiry = new Uint32Array(memory);
    this.#bytes = new Uint8Array(memory);
    this.#slots = new Uint32Array(this.#slotCount);
  }

  #used(): number {
    return this.#wrapped ? this.#end - this.#tail + this.#head : this.#head - this.#tail;
  }

  #home(hash: number): number {
    return Math.floor(((hash >>> 0) / 0x1_0000_0000) * this.#slotCount);
  }

  #next(slot: number): number {
    return slot + 1 === this.#slotCount ? 0 : slot + 1;
  }

  #slotOfKey(hash: number, tag: number, key: Uint8Array, start: number, end: number): number {
    const words = this.#words;
    for (let slot = this.#home(hash); ; slot = this.#next(slot)) {
      const held = this.#slots[slot] as number;
      if (held === 0) return -1;
      const word = (held - 1) * 2;
      if (words[word] !== hash || words[word + tagWord] !== tag || words[word + lengthWord] !== end - start) continue;
      if (equalRanges(this.#bytes, (held - 1 + headerGranules) * 8, key, start, end - start)) return slot;
    }
  }

  /** Empties a slot and moves those behind it up, so that no mark of a deleted one is needed. */
  #unlink(slot: number): void {
    const slots = this.#slots;
    const count = this.#slotCount;
    let hole = slot;
    for (let at = this.#next(slot); slots[at] !== 0; at = this.#next(at)) {
      const home = this.#home(this.#words[((slots[at] as number) - 1) * 2] as number);
      if ((at - home + count) % count < (at - hole + count) % count) continue;
      slots[hole] = slots[at] as number;
      hole = at;
    }
    slots[hole] = 0;
    this.#entries--;
  }

  /** Makes `size` granules from the head on free, by one round of the log at most. */
  #makeRoom(size: number, stays: StaysUntil): boolean {
    for (let left = this.#used(); !this.#hasRoom(size); ) {
      if (left <= 0) return false;
      left -= this.#passTail(stays);
    }
    return true;
  }

  #hasRoom(size: number): boolean {
    if (this.#entries >= this.#entriesMax) return false;
    if (this.#wrapped) return this.#tail - this.#head >= size;
    if (this.#granules - this.#head >= size) return true;
    if (this.#tail < size) return false;
    this.#wrap();
    return true;
  }

  #wrap(): void {
    this.#end = this.#head;
    this.#head = 0;
    this.#wrapped = true;
  }

  /** Forgets the oldest entry, or moves it to the head when it has to stay. The granules passed. */
  #passTail(stays: StaysUntil): number {
    const from = this.#tail;
    const word = from * 2;
    const length = this.#words[word + lengthWord] as number;
    const size = headerGranules + (((length < 0 ? ~length : length) + 7) >>> 3);
    const moves =
      length >= 0 && stays(this.#words[word + tagWord] as number, this.#expiry[word + expiryWord] as number);
    const slot = length < 0 ? -1 : this.#slotOfEntry(this.#words[word] as number, from);
    if (slot >= 0 && !moves) this.#unlink(slot);
    this.#tail += size;
    // The place of the entry itself is free now, so there is room for it wherever the head is.
    if (moves && !this.#wrapped && this.#granules - this.#head < size) this.#wrap();
    if (moves) {
      this.#words.copyWithin(this.#head * 2, word, word + size * 2);
      this.#slots[slot] = this.#head + 1;
      this.#head += size;
    }
    if (this.#wrapped && this.#tail === this.#end) {
      this.#tail = 0;
      this.#wrapped = false;
    } else if (!this.#wrapped && this.#tail === this.#head) {
      this.#tail = 0;
      this.#head = 0;
    }
    return size;
  }

  #slotOfEntry(hash: number, entry: number): number {
    let slot = this.#home(hash);
    while (this.#slots[slot] !== entry + 1) slot = this.#next(slot);
    return slot;
  }
}
