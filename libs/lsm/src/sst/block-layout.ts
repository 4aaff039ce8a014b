import { readU16, readU32 } from './frame.ts';

/** Key length (2), flags (1), value length (4). */
export const entryHeaderBytes = 7;
export const expiryBytes = 6;
export const flagTombstone = 1;
export const flagExpiry = 2;
/** Six bytes; what lies beyond is never. */
export const expiryMsMax = 2 ** 48 - 1;

/** Where the parts of the entry at `at` lie; a caller keeps one and reuses it. */
export interface EntryParts {
  keyStart: number;
  keyEnd: number;
  valueStart: number;
  valueEnd: number;
  isTombstone: boolean;
  /** 0 means never. */
  expiresAtMs: number;
}

export function readEntry(bytes: Uint8Array, at: number, into: EntryParts): void {
  const flags = bytes[at + 2] as number;
  let start = at + entryHeaderBytes;
  into.isTombstone = (flags & flagTombstone) !== 0;
  into.expiresAtMs = 0;
  if ((flags & flagExpiry) !== 0) {
    into.expiresAtMs = readU32(bytes, start) + readU16(bytes, start + 4) * 0x1_0000_0000;
    start += expiryBytes;
  }
  into.keyStart = start;
  into.keyEnd = start + readU16(bytes, at);
  into.valueStart = into.keyEnd;
  into.valueEnd = into.keyEnd + readU32(bytes, at + 3);
}

export function keyStartOf(bytes: Uint8Array, at: number): number {
  return at + entryHeaderBytes + (((bytes[at + 2] as number) & flagExpiry) !== 0 ? expiryBytes : 0);
}
