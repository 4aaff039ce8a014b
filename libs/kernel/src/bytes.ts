/** Unsigned lexicographic order of `a[aStart, aEnd)` and `b[bStart, bEnd)`: negative, 0 or positive. */
export function compareRanges(
  a: Uint8Array,
  aStart: number,
  aEnd: number,
  b: Uint8Array,
  bStart: number,
  bEnd: number,
): number {
  const aLength = aEnd - aStart;
  const bLength = bEnd - bStart;
  const common = aLength < bLength ? aLength : bLength;
  for (let i = 0; i < common; i++) {
    const difference = (a[aStart + i] as number) - (b[bStart + i] as number);
    if (difference !== 0) return difference;
  }
  return aLength - bLength;
}

/** Unsigned lexicographic order of two byte strings. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  return compareRanges(a, 0, a.length, b, 0, b.length);
}

/** The smallest byte string greater than every string that starts with `prefix`; undefined when there is none (all 0xff). */
export function prefixEnd(prefix: Uint8Array): Uint8Array | undefined {
  for (let i = prefix.length - 1; i >= 0; i--) {
    const byte = prefix[i] as number;
    if (byte === 0xff) continue;
    const end = prefix.slice(0, i + 1);
    end[i] = byte + 1;
    return end;
  }
  return undefined;
}

/** Whether `a[aStart, aStart + length)` and `b[bStart, bStart + length)` are the same bytes. */
export function equalRanges(a: Uint8Array, aStart: number, b: Uint8Array, bStart: number, length: number): boolean {
  for (let i = 0; i < length; i++) if (a[aStart + i] !== b[bStart + i]) return false;
  return true;
}

/** Below this a loop beats `set` with the view that it needs. */
const loopBytesMax = 40;

/** Copies `from[start, end)` to `to` at `at`. */
export function copyRange(from: Uint8Array, start: number, end: number, to: Uint8Array, at: number): void {
  if (end - start > loopBytesMax) {
    // Not `subarray`, which is dear for a Buffer.
    to.set(new Uint8Array(from.buffer, from.byteOffset + start, end - start), at);
    return;
  }
  for (let i = start, j = at; i < end; i++, j++) to[j] = from[i] as number;
}

/** A copy in memory of its own; `slice` would give a view where the bytes are a Buffer. */
export function copyOf(bytes: Uint8Array, start: number, end: number): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(end - start);
  copy.set(bytes.subarray(start, end));
  return copy;
}
