import { ByteReader, ByteWriter, compareRanges } from '@millrace/kernel';

/** Collects the index of a table while its blocks are written. */
export class SstIndexBuilder {
  readonly #out = new ByteWriter(4096);
  blocks = 0;

  add(offset: number, length: number, first: Uint8Array, last: Uint8Array): void {
    this.blocks++;
    const out = this.#out;
    out.u32le(offset);
    out.u32le(length);
    out.raw(Uint8Array.of(first.length & 0xff, first.length >>> 8, last.length & 0xff, last.length >>> 8));
    out.raw(first);
    out.raw(last);
  }

  bytes(): Buffer {
    const written = this.#out.written();
    return Buffer.from(written.buffer, written.byteOffset, written.length);
  }
}

/** Where each block of a table lies and which keys it spans; kept in memory while the table is open. */
export class SstIndex {
  readonly blocks: number;
  /** Block `i` is `[offsets[i], offsets[i + 1])` of the file: blocks lie one behind the other. */
  readonly offsets: Uint32Array;
  /** First and last key of block `i` are `keys[ends[2i], ends[2i + 1])` and `keys[ends[2i + 1], ends[2i + 2])`. */
  readonly #ends: Uint32Array;
  readonly #keys: Uint8Array;
  /** Bytes that all keys of the table share, and the eight that follow in each last key, as two words: most comparisons. */
  readonly #shared: number;
  readonly #words: Uint32Array;

  constructor(payload: Uint8Array, blocks: number) {
    const reader = new ByteReader(payload);
    this.blocks = blocks;
    this.offsets = new Uint32Array(blocks + 1);
    this.#ends = new Uint32Array(blocks * 2 + 1);
    this.#keys = new Uint8Array(payload.length - blocks * 12);
    let end = 0;
    for (let i = 0; i < blocks; i++) {
      this.offsets[i] = reader.u32le();
      this.offsets[i + 1] = (this.offsets[i] as number) + reader.u32le();
      const lengths = reader.u32le();
      const first = lengths & 0xffff;
      const both = first + (lengths >>> 16);
      this.#keys.set(reader.raw(both), end);
      this.#ends[i * 2 + 1] = end + first;
      this.#ends[i * 2 + 2] = end + both;
      end += both;
    }
    this.#shared = this.#countShared();
    this.#words = new Uint32Array(blocks * 2);
    for (let i = 0; i < blocks; i++) {
      const start = (this.#ends[i * 2 + 1] as number) + this.#shared;
      const lastEnd = this.#ends[i * 2 + 2] as number;
      this.#words[i * 2] = wordAt(this.#keys, start, lastEnd);
      this.#words[i * 2 + 1] = wordAt(this.#keys, start + 4, lastEnd);
    }
  }

  get memoryBytes(): number {
    return this.offsets.byteLength + this.#ends.byteLength + this.#words.byteLength + this.#keys.length;
  }

  /** The first block whose last key is not less than the key; `blocks` when there is none. */
  lowerBound(key: Uint8Array, start: number, end: number): number {
    const shared = this.#shared;
    const order = compareRanges(key, start, Math.min(end, start + shared), this.#keys, 0, shared);
    if (order !== 0) return order < 0 ? 0 : this.blocks;
    const words = this.#words;
    const high32 = wordAt(key, start + shared, end);
    const low32 = wordAt(key, start + shared + 4, end);
    let low = 0;
    let high = this.blocks;
    while (low < high) {
      const middle = (low + high) >>> 1;
      let difference = (words[middle * 2] as number) - high32;
      if (difference === 0) difference = (words[middle * 2 + 1] as number) - low32;
      if (difference === 0) difference = this.#compareLast(middle, key, start, end);
      if (difference < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The only block that may have the key, -1 when none may. */
  blockOf(key: Uint8Array, start: number, end: number): number {
    const block = this.lowerBound(key, start, end);
    if (block === this.blocks) return -1;
    const firstStart = this.#ends[block * 2] as number;
    const firstEnd = this.#ends[block * 2 + 1] as number;
    return compareRanges(this.#keys, firstStart, firstEnd, key, start, end) <= 0 ? block : -1;
  }

  #compareLast(block: number, key: Uint8Array, start: number, end: number): number {
    const lastStart = this.#ends[block * 2 + 1] as number;
    return compareRanges(this.#keys, lastStart, this.#ends[block * 2 + 2] as number, key, start, end);
  }

  /** Keys are in order, so what the first and the last share all share. */
  #countShared(): number {
    const firstEnd = this.#ends[1] as number;
    const lastStart = this.#ends[this.blocks * 2 - 1] as number;
    const length = Math.min(firstEnd, this.#keys.length - lastStart);
    let shared = 0;
    while (shared < length && this.#keys[shared] === this.#keys[lastStart + shared]) shared++;
    return shared;
  }
}

/** Four bytes of a key, zero beyond its end: padding never contradicts the order, it only leaves it open. */
function wordAt(bytes: Uint8Array, start: number, end: number): number {
  if (start + 4 <= end) {
    const high = ((bytes[start] as number) << 24) | ((bytes[start + 1] as number) << 16);
    return (high | ((bytes[start + 2] as number) << 8) | (bytes[start + 3] as number)) >>> 0;
  }
  let word = 0;
  for (let i = start; i < start + 4; i++) word = word * 256 + (i < end ? (bytes[i] as number) : 0);
  return word;
}
