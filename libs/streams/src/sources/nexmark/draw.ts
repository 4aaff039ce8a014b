/** Numbers drawn one after the other, the same ones for the same seed and index. */
export interface Draw {
  /** Whole, from 0 up to and without `bound`. */
  below(bound: number): number;
  /** From 0 up to and without 1. */
  fraction(): number;
  of<T>(items: readonly T[]): T;
  /** Lower-case letters. */
  letters(count: number): string;
}

/** Mulberry32 (T. Ettinger), started from a hash of seed and index: no draw depends on an earlier event's. */
export function draw(seed: number, index: number): Draw {
  let state = mix(mix(seed | 0) ^ mix(index | 0) ^ Math.imul(Math.floor(index / 2 ** 32), 0x9e3779b1));
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  };
  const fraction = (): number => next() / 2 ** 32;
  const below = (bound: number): number => Math.floor(fraction() * bound);
  return {
    below,
    fraction,
    of: (items) => items[below(items.length)] as (typeof items)[number],
    letters: (count) => {
      let text = '';
      for (let left = count; left > 0; left -= 5) {
        // Five letters fit in one draw: 26^5 < 2^32.
        let bits = next();
        for (let i = Math.min(5, left); i > 0; i--) {
          text += String.fromCharCode(97 + (bits % 26));
          bits = Math.floor(bits / 26);
        }
      }
      return text;
    },
  };
}

/** The finaliser of murmur3_32. */
function mix(value: number): number {
  let h = value;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
