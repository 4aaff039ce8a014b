/**
 * A copy on the disk is the content of a file and a trailer: the CRC-32 of each chunk of 4 KiB, then magic, version, number
 * of chunks and the CRC-32 of all of this, as little-endian 32-bit words. So every read is verified for itself, whenever the
 * copy was written and whatever happened to the disk since; a restart reads nothing but names.
 */
import { crc32 } from 'node:zlib';
import type { DiskReader, DiskWriter } from './cache-disk.ts';

const chunkBytes = 4096;
const magic = 0x4643_524d;
const version = 1;
const footerWords = 4;

function chunksOf(sizeBytes: number): number {
  return Math.ceil(sizeBytes / chunkBytes);
}

/** Bytes on the disk of a copy of `sizeBytes`. */
export function copyBytes(sizeBytes: number): number {
  return sizeBytes + (chunksOf(sizeBytes) + footerWords) * 4;
}

/** Writes content, then `finish` its trailer. */
export class CopyWriter {
  readonly #writer: DiskWriter;
  readonly #checksums: number[] = [];
  #sizeBytes = 0;
  #crc32 = 0;
  #chunkCrc32 = 0;

  constructor(writer: DiskWriter) {
    this.#writer = writer;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Of what was appended so far. */
  get crc32(): number {
    return this.#crc32;
  }

  async append(bytes: Uint8Array): Promise<void> {
    this.#crc32 = crc32(bytes, this.#crc32);
    for (let at = 0; at < bytes.length; ) {
      const room = chunkBytes - (this.#sizeBytes % chunkBytes);
      const part = bytes.subarray(at, at + room);
      this.#chunkCrc32 = crc32(part, this.#chunkCrc32);
      this.#sizeBytes += part.length;
      at += part.length;
      if (part.length === room) this.#endChunk();
    }
    await this.#writer.append(bytes);
  }

  async finish(): Promise<void> {
    if (this.#sizeBytes % chunkBytes !== 0) this.#endChunk();
    const count = this.#checksums.length;
    const trailer = new DataView(new ArrayBuffer((count + footerWords) * 4));
    const words = [...this.#checksums, magic, version, count];
    words.forEach((word, i) => trailer.setUint32(i * 4, word, true));
    trailer.setUint32(words.length * 4, crc32(new Uint8Array(trailer.buffer, 0, words.length * 4)), true);
    await this.#writer.append(new Uint8Array(trailer.buffer));
    await this.#writer.close();
  }

  close(): Promise<void> {
    return this.#writer.close();
  }

  #endChunk(): void {
    this.#checksums.push(this.#chunkCrc32);
    this.#chunkCrc32 = 0;
  }
}

/** Why a copy does not answer: it was removed while open, or it is not what was written. */
export type NoAnswer = 'gone' | 'damaged';

/** A copy that is open. */
export class CopyReader {
  readonly #reader: DiskReader;
  readonly #sizeBytes: number;
  readonly #checksums: Uint32Array;

  private constructor(reader: DiskReader, sizeBytes: number, checksums: Uint32Array) {
    this.#reader = reader;
    this.#sizeBytes = sizeBytes;
    this.#checksums = checksums;
  }

  /** Undefined when the trailer is not what was written. */
  static async open(reader: DiskReader, sizeBytes: number): Promise<CopyReader | undefined> {
    if (reader.bytes !== copyBytes(sizeBytes)) return undefined;
    const count = chunksOf(sizeBytes);
    const length = (count + footerWords) * 4;
    const bytes = await reader.read(sizeBytes, length);
    if (bytes.length !== length) return undefined;
    const trailer = new DataView(bytes.buffer, bytes.byteOffset, length);
    const word = (i: number): number => trailer.getUint32(i * 4, true);
    if (word(count) !== magic || word(count + 1) !== version || word(count + 2) !== count) return undefined;
    if (word(count + 3) !== crc32(bytes.subarray(0, length - 4))) return undefined;
    return new CopyReader(
      reader,
      sizeBytes,
      Uint32Array.from({ length: count }, (_, i) => word(i)),
    );
  }

  /** `[offset, offset + length)`, which lies within the file; exactly what was written. */
  async read(offset: number, length: number): Promise<Uint8Array | NoAnswer> {
    if (length === 0) return new Uint8Array(0);
    const first = Math.floor(offset / chunkBytes);
    const start = first * chunkBytes;
    const end = Math.min(this.#sizeBytes, Math.ceil((offset + length) / chunkBytes) * chunkBytes);
    const bytes = await this.#reader.read(start, end - start);
    if (bytes.length !== end - start) return 'gone';
    for (let at = 0, chunk = first; at < bytes.length; at += chunkBytes, chunk++) {
      if (crc32(bytes.subarray(at, at + chunkBytes)) !== this.#checksums[chunk]) return 'damaged';
    }
    return bytes.subarray(offset - start, offset - start + length);
  }

  close(): void {
    this.#reader.close();
  }
}
