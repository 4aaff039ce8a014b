/** MurmurHash3 x86 32-bit (Austin Appleby, public domain) of `bytes[start, end)`; an unsigned 32-bit integer. */
export function murmur3(bytes: Uint8Array, start = 0, end = bytes.length, seed = 0): number {
  let h = seed;
  const length = end - start;
  const body = start + (length & ~3);
  for (let i = start; i < body; i += 4) {
    let k =
      (bytes[i] as number) |
      ((bytes[i + 1] as number) << 8) |
      ((bytes[i + 2] as number) << 16) |
      ((bytes[i + 3] as number) << 24);
    k = Math.imul(k, 0xcc9e2d51);
    k = (k << 15) | (k >>> 17);
    h ^= Math.imul(k, 0x1b873593);
    h = (h << 13) | (h >>> 19);
    h = (Math.imul(h, 5) + 0xe6546b64) | 0;
  }
  const rest = length & 3;
  if (rest > 0) {
    let k = bytes[body] as number;
    if (rest > 1) k |= (bytes[body + 1] as number) << 8;
    if (rest > 2) k |= (bytes[body + 2] as number) << 16;
    k = Math.imul(k, 0xcc9e2d51);
    k = (k << 15) | (k >>> 17);
    h ^= Math.imul(k, 0x1b873593);
  }
  h ^= length;
  h ^= h >>> 16;
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
