import { SeededRandom } from '@millrace/kernel';

export const keyBytes = 16;
/** Rows of one batch: what a slot writes together. */
export const batchRows = 800;

/** Keys `0 … n-1` as sixteen digits and values of which half does not compress, made as they are asked for. */
export class Data {
  readonly keys: number;
  readonly valueBytes: number;
  /** Every key once, in random order. */
  readonly order: Uint32Array;
  readonly #noise: Buffer;

  constructor(keys: number, valueBytes: number) {
    const random = new SeededRandom(1);
    this.keys = keys;
    this.valueBytes = valueBytes;
    this.order = Uint32Array.from({ length: keys }, (_, i) => i);
    for (let i = keys - 1; i > 0; i--) {
      const other = random.below(i + 1);
      [this.order[i], this.order[other]] = [this.order[other] as number, this.order[i] as number];
    }
    this.#noise = Buffer.alloc(1 << 20);
    for (let i = 0; i < this.#noise.length; i += 4) this.#noise.writeUInt32LE(random.nextU32(), i);
  }

  /** Bytes of all keys and values. */
  get bytes(): number {
    return this.keys * (keyBytes + this.valueBytes);
  }

  writeKey(key: number, into: Uint8Array, at: number): void {
    let rest = key;
    for (let i = at + keyBytes - 1; i >= at; i--) {
      into[i] = 48 + (rest % 10);
      rest = Math.trunc(rest / 10);
    }
  }

  writeRow(key: number, into: Uint8Array, at: number): void {
    this.writeKey(key, into, at);
    const half = this.valueBytes >> 1;
    const start = (key * 61) % (this.#noise.length - half);
    into.set(this.#noise.subarray(start, start + half), at + keyBytes);
    into.fill(key & 0xff, at + keyBytes + half, at + keyBytes + this.valueBytes);
  }

  /** Whether `value` begins as that of the key does; a wrong answer must not count as a fast one. */
  check(key: number, value: Uint8Array, start: number): void {
    const expected = this.#noise[(key * 61) % (this.#noise.length - (this.valueBytes >> 1))];
    if (value[start] !== expected) throw new Error(`wrong value of key ${key}`);
  }
}
