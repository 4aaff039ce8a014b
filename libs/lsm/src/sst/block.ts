import { compareRanges, copyOf, equalRanges } from '@millrace/kernel';
import { corrupt } from '../errors.ts';
import { keyHash } from '../memtable/memtable.ts';
import { entryHeaderBytes, keyStartOf } from './block-layout.ts';
import { readU16, readU32 } from './frame.ts';

const offsetMask = 0xffff;
const tagMask = 0xffff_0000 | 0;
/** Objects, views and headers beside the bytes, roughly. */
const overheadBytes = 256;

/** A decoded block. Point lookups go through a small hash table that the first of them builds. */
export class Block {
  readonly bytes: Uint8Array;
  readonly offsets: Uint32Array;
  /** Offset + 1 and the hash's low half in one word, by the hash's high half; open addressing, 0 is empty. */
  #table: Uint32Array | undefined;

  constructor(payload: Uint8Array, file: string) {
    const count = payload.length >= 4 ? readU32(payload, payload.length - 4) : 0;
    const start = payload.length - 4 - count * 4;
    if (count === 0 || count > 0x7fff || start < entryHeaderBytes) throw corrupt(file, 'a block has a bad entry count');
    this.bytes = payload;
    this.offsets = wordsOf(payload, start, count);
  }

  get count(): number {
    return this.offsets.length;
  }

  /** What the block costs in memory, its hash table included whether it is there yet or not. */
  get memoryBytes(): number {
    return this.bytes.length + tableSize(this.count) * 4 + overheadBytes;
  }

  /** Offset of the entry with the key, -1 when there is none. */
  find(hash: number, key: Uint8Array, start: number, end: number): number {
    const table = (this.#table ??= this.#buildTable());
    const bytes = this.bytes;
    const length = end - start;
    const mask = table.length - 1;
    const tag = hash << 16;
    let slot = tableSlot(hash, mask);
    for (;;) {
      const word = table[slot] as number;
      if (word === 0) return -1;
      if (((word ^ tag) & tagMask) === 0) {
        const at = (word & offsetMask) - 1;
        if (readU16(bytes, at) === length && equalRanges(bytes, keyStartOf(bytes, at), key, start, length)) return at;
      }
      slot = (slot + 1) & mask;
    }
  }

  /** The first entry whose key is not less than `key`; `count` when there is none. */
  lowerBound(key: Uint8Array): number {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const at = this.offsets[middle] as number;
      const start = keyStartOf(this.bytes, at);
      if (compareRanges(this.bytes, start, start + readU16(this.bytes, at), key, 0, key.length) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #buildTable(): Uint32Array {
    const table = new Uint32Array(tableSize(this.count));
    const mask = table.length - 1;
    for (let entry = 0; entry < this.count; entry++) {
      const at = this.offsets[entry] as number;
      const start = keyStartOf(this.bytes, at);
      const hash = keyHash(this.bytes, start, start + readU16(this.bytes, at));
      let slot = tableSlot(hash, mask);
      while (table[slot] !== 0) slot = (slot + 1) & mask;
      table[slot] = (hash << 16) | (at + 1);
    }
    return table;
  }
}

/** The high bits: the low ones choose the filter's block. */
function tableSlot(hash: number, mask: number): number {
  return (hash >>> 16) & mask;
}

function tableSize(count: number): number {
  let size = 4;
  while (size < count * 2) size *= 2;
  return size;
}

/** Little-endian words in place where their alignment allows it. */
export function wordsOf(bytes: Uint8Array, start: number, count: number): Uint32Array {
  const at = bytes.byteOffset + start;
  if (at % 4 === 0) return new Uint32Array(bytes.buffer, at, count);
  return new Uint32Array(copyOf(bytes, start, start + count * 4).buffer);
}
