/** Randomness, injected. Nothing outside this file calls `Math.random` or `crypto`. */
export interface Random {
  /** An integer in [0, 2^32). */
  nextU32(): number;
  /** An integer in [0, bound). `bound` at most 2^32. */
  below(bound: number): number;
  /** A float in [0, 1). */
  float(): number;
  /** `bytes` random bytes in lower-case hex. */
  hex(bytes: number): string;
}

abstract class Base implements Random {
  abstract nextU32(): number;
  below(bound: number): number {
    return Math.floor(this.float() * bound);
  }
  float(): number {
    return this.nextU32() / 0x1_0000_0000;
  }
  hex(bytes: number): string {
    let out = '';
    for (let i = 0; i < bytes; i++) out += (this.nextU32() >>> 24).toString(16).padStart(2, '0');
    return out;
  }
}

class SystemRandom extends Base {
  readonly #buffer = new Uint32Array(64);
  #next = 64;
  nextU32(): number {
    if (this.#next === this.#buffer.length) {
      crypto.getRandomValues(this.#buffer);
      this.#next = 0;
    }
    return this.#buffer[this.#next++] as number;
  }
}

export const systemRandom: Random = new SystemRandom();

/** Deterministic generator for tests, data generators and simulations (xoshiro128**, Blackman and Vigna 2018). */
export class SeededRandom extends Base {
  readonly #s = new Uint32Array(4);

  constructor(seed: number) {
    super();
    let x = seed >>> 0;
    for (let i = 0; i < 4; i++) {
      x = (x + 0x9e3779b9) >>> 0;
      let z = x;
      z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
      z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
      this.#s[i] = z ^ (z >>> 16);
    }
  }

  nextU32(): number {
    const s = this.#s;
    const s1 = s[1] as number;
    const product = Math.imul(s1, 5);
    const result = Math.imul((product << 7) | (product >>> 25), 9) >>> 0;
    const t = s1 << 9;
    s[2] = (s[2] as number) ^ (s[0] as number);
    s[3] = (s[3] as number) ^ s1;
    s[1] = s1 ^ (s[2] as number);
    s[0] = (s[0] as number) ^ (s[3] as number);
    s[2] = (s[2] as number) ^ t;
    const s3 = s[3] as number;
    s[3] = (s3 << 11) | (s3 >>> 21);
    return result;
  }
}
