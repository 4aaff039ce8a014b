/** Whether `a[aStart, aStart + length)` and `b[bStart, bStart + length)` are the same bytes. */
export function equalRanges(a: Uint8Array, aStart: number, b: Uint8Array, bStart: number, length: number): boolean {
  for (let i = 0; i < length; i++) if (a[aStart + i] !== b[bStart + i]) return false;
  return true;
}

/** Below this a loop beats `set` with the view that it needs. */
const loopBytesMax = 160;

/** Copies `from[start, end)` to `to` at `at`. */
export function copyRange(from: Uint8Array, start: number, end: number, to: Uint8Array, at: number): void {
  if (end - start > loopBytesMax) {
    to.set(from.subarray(start, end), at);
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
