const wordsPerBlock = 16;
const bitsPerBlock = wordsPerBlock * 32;
const probes = 6;

/** Blocked Bloom filter over 32-bit key hashes (FORMAT.md): one cache line a lookup. */
export class Bloom {
  readonly words: Uint32Array;
  readonly #blocks: number;

  constructor(words: Uint32Array) {
    this.words = words;
    this.#blocks = words.length / wordsPerBlock;
  }

  static forKeys(keys: number, bitsPerKey: number): Bloom {
    const blocks = Math.max(1, Math.ceil((keys * bitsPerKey) / bitsPerBlock));
    return new Bloom(new Uint32Array(blocks * wordsPerBlock));
  }

  add(hash: number): void {
    const base = ((hash >>> 0) % this.#blocks) * wordsPerBlock;
    let g = Math.imul(hash, 0x9e3779b1);
    for (let i = 0; i < probes; i++) {
      const word = base + (g >>> 28);
      this.words[word] = (this.words[word] as number) | (1 << ((g >>> 23) & 31));
      g = Math.imul(g, 0x85ebca6b);
      g ^= g >>> 15;
    }
  }

  /** False only for a hash that was never added. */
  mayHave(hash: number): boolean {
    const base = ((hash >>> 0) % this.#blocks) * wordsPerBlock;
    let g = Math.imul(hash, 0x9e3779b1);
    for (let i = 0; i < probes; i++) {
      if (((this.words[base + (g >>> 28)] as number) & (1 << ((g >>> 23) & 31))) === 0) return false;
      g = Math.imul(g, 0x85ebca6b);
      g ^= g >>> 15;
    }
    return true;
  }
}
