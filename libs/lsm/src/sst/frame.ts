/** The envelope of everything in a table: codec and checksum (FORMAT.md). */

import { crc32 } from 'node:zlib';
import { copyOf } from '@millrace/kernel';
import { compressSync, uncompressSync } from 'lz4-napi';
import { corrupt } from '../errors.ts';

export const frameTrailerBytes = 5;
const codecNone = 0;
const codecLz4 = 1;
/** Compression has to save a third to be kept: a byte less costs time at each write, merge and read. */
const savingShare = 1 / 3;
/** After a payload that did not compress, this many are stored as they are before the next attempt. */
const attemptsSkipped = 15;

/** Makes frames; remembers whether compression paid lately. */
export class FrameEncoder {
  readonly #compress: boolean;
  #skip = 0;

  constructor(compress: boolean) {
    this.#compress = compress;
  }

  /** What to store for `payload`: the bytes and their codec. */
  encode(payload: Buffer): { readonly stored: Buffer; readonly codec: number } {
    if (!this.#compress) return { stored: payload, codec: codecNone };
    if (this.#skip > 0) {
      this.#skip--;
      return { stored: payload, codec: codecNone };
    }
    const packed = compressSync(payload);
    if (packed.length <= payload.length * (1 - savingShare)) return { stored: packed, codec: codecLz4 };
    this.#skip = attemptsSkipped;
    return { stored: payload, codec: codecNone };
  }
}

/** Writes the trailer of a frame whose payload is `bytes[start, at)`; returns the end of the frame. */
export function writeFrameTrailer(bytes: Buffer, start: number, at: number, codec: number): number {
  bytes[at] = codec;
  bytes.writeUInt32LE(crc32(bytes.subarray(start, at + 1)), at + 1);
  return at + frameTrailerBytes;
}

/** The payload of a frame; with `isOwn` in memory of its own, else possibly a view of the frame. */
export function decodeFrame(frame: Uint8Array, isOwn: boolean, file: string, what: string): Uint8Array {
  const end = frame.length - frameTrailerBytes;
  if (end < 0) throw corrupt(file, `${what} is cut short`);
  const stored = readU32(frame, end + 1);
  if (crc32(frame.subarray(0, end + 1)) !== stored) throw corrupt(file, `${what} fails its checksum`);
  const codec = frame[end];
  if (codec === codecNone) return isOwn ? copyOf(frame, 0, end) : frame.subarray(0, end);
  if (codec === codecLz4) return uncompressSync(frame.subarray(0, end));
  throw corrupt(file, `${what} has the unknown codec ${codec}`);
}

export function readU16(bytes: Uint8Array, at: number): number {
  return (bytes[at] as number) | ((bytes[at + 1] as number) << 8);
}

export function readU32(bytes: Uint8Array, at: number): number {
  const low = (bytes[at] as number) | ((bytes[at + 1] as number) << 8) | ((bytes[at + 2] as number) << 16);
  return (low | ((bytes[at + 3] as number) << 24)) >>> 0;
}
