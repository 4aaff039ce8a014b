import { copyRange } from '@millrace/kernel';
import { entryHeaderBytes, expiryBytes, flagExpiry, flagTombstone, keyStartOf } from './block-layout.ts';
import { readU16 } from './frame.ts';

/** Collects the entries of one block (FORMAT.md) and keeps its buffers for the next. */
export class BlockBuilder {
  #buffer: Buffer;
  #end = 0;
  #offsets = new Uint32Array(64);
  #count = 0;

  constructor(blockBytes: number) {
    this.#buffer = Buffer.allocUnsafeSlow(blockBytes * 2);
  }

  get count(): number {
    return this.#count;
  }

  /** Bytes of the entries so far. */
  get bytes(): number {
    return this.#end;
  }

  add(
    bytes: Uint8Array,
    keyStart: number,
    keyEnd: number,
    valueStart: number,
    valueEnd: number,
    isTombstone: boolean,
    expiresAtMs: number,
  ): void {
    const keyLength = keyEnd - keyStart;
    const valueLength = isTombstone ? 0 : valueEnd - valueStart;
    this.#reserve(entryHeaderBytes + expiryBytes + keyLength + valueLength);
    if (this.#count === this.#offsets.length) this.#offsets = doubled(this.#offsets);
    this.#offsets[this.#count++] = this.#end;
    const buffer = this.#buffer;
    let at = this.#end;
    buffer[at] = keyLength;
    buffer[at + 1] = keyLength >>> 8;
    buffer[at + 2] = (isTombstone ? flagTombstone : 0) | (expiresAtMs === 0 ? 0 : flagExpiry);
    buffer[at + 3] = valueLength;
    buffer[at + 4] = valueLength >>> 8;
    buffer[at + 5] = valueLength >>> 16;
    buffer[at + 6] = valueLength >>> 24;
    at += entryHeaderBytes;
    if (expiresAtMs !== 0) at = buffer.writeUIntLE(expiresAtMs, at, expiryBytes);
    copyRange(bytes, keyStart, keyEnd, buffer, at);
    at += keyLength;
    copyRange(bytes, valueStart, valueStart + valueLength, buffer, at);
    this.#end = at + valueLength;
  }

  firstKey(): Uint8Array {
    return this.#keyAt(0);
  }

  lastKey(): Uint8Array {
    return this.#keyAt(this.#offsets[this.#count - 1] as number);
  }

  /** The finished payload, valid until the next `add`; the builder is empty again. */
  take(): Buffer {
    this.#reserve(8 + this.#count * 4);
    const buffer = this.#buffer;
    let at = this.#end;
    while (at % 4 !== 0) buffer[at++] = 0;
    for (let i = 0; i < this.#count; i++) at = buffer.writeUInt32LE(this.#offsets[i] as number, at);
    at = buffer.writeUInt32LE(this.#count, at);
    this.#count = 0;
    this.#end = 0;
    return buffer.subarray(0, at);
  }

  #keyAt(at: number): Uint8Array {
    const start = keyStartOf(this.#buffer, at);
    return Uint8Array.from(this.#buffer.subarray(start, start + readU16(this.#buffer, at)));
  }

  #reserve(bytes: number): void {
    const needed = this.#end + bytes;
    if (needed <= this.#buffer.length) return;
    const grown = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, needed));
    this.#buffer.copy(grown, 0, 0, this.#end);
    this.#buffer = grown;
  }
}

function doubled(values: Uint32Array): Uint32Array<ArrayBuffer> {
  const grown = new Uint32Array(values.length * 2);
  grown.set(values);
  return grown;
}
