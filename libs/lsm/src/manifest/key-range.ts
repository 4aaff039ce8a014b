import { compareBytes, compareRanges } from '@millrace/kernel';

/** `[start, end)` in unsigned byte order; without `end`, to the end of the key space. */
export interface KeyRange {
  readonly start: Uint8Array;
  readonly end?: Uint8Array | undefined;
}

export const wholeRange: KeyRange = { start: new Uint8Array() };

/** What both contain; undefined when they have nothing in common. */
export function intersect(a: KeyRange, b: KeyRange): KeyRange | undefined {
  const start = compareBytes(a.start, b.start) >= 0 ? a.start : b.start;
  const end = earlierEnd(a.end, b.end);
  if (end === undefined) return { start };
  return compareBytes(start, end) < 0 ? { start, end } : undefined;
}

export function inRange(range: KeyRange, key: Uint8Array, start: number, end: number): boolean {
  if (compareRanges(key, start, end, range.start, 0, range.start.length) < 0) return false;
  return range.end === undefined || compareRanges(key, start, end, range.end, 0, range.end.length) < 0;
}

function earlierEnd(a: Uint8Array | undefined, b: Uint8Array | undefined): Uint8Array | undefined {
  if (a === undefined) return b;
  if (b === undefined) return a;
  return compareBytes(a, b) <= 0 ? a : b;
}
