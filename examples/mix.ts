/** A 32-bit hash of an index: the finaliser of MurmurHash3 over index and seed. */
export function mix(index: number, seed: number): number {
  let h = (Math.imul(index ^ (index / 0x1_0000_0000), 0x9e3779b1) + seed) | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Uniform in [0, bound), by 53 bits. */
export function pick(index: number, seed: number, bound: number): number {
  const high = mix(index, seed) * 0x20_0000;
  return Math.floor(((high + (mix(index, seed + 1) >>> 11)) / 0x20_0000_0000_0000) * bound);
}
