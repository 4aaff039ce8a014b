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
  }

  get memoryBytes(): number {
    return this.offsets.byteLength + this.#ends.byteLength + this.#keys.length;
  }

  /** The first block whose last key is not less than the key; `blocks` when there is none. */
  lowerBound(key: Uint8Array, start: number, end: number): number {
    const ends = this.#ends;
    let low = 0;
    let high = this.blocks;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const lastStart = ends[middle * 2 + 1] as number;
      const lastEnd = ends[middle * 2 + 2] as number;
      if (compareRanges(this.#keys, lastStart, lastEnd, key, start, end) < 0) low = middle + 1;
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
}
