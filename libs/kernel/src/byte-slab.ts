/** Bytes of one slab. It lives as long as any of the copies in it, so it is small. */
const slabBytes = 16 * 1024;
/** Larger copies have memory of their own. */
const sharedBytesMax = 1024;

/**
 * Makes copies of short byte strings, many in one piece of memory: a typed array with memory of its own costs the engine
 * four times as much, and its collector again.
 */
export class ByteSlab {
  #slab = new Uint8Array(0);
  #used = 0;

  copy(bytes: Uint8Array, start: number, end: number): Uint8Array {
    const length = end - start;
    const from = new Uint8Array(bytes.buffer, bytes.byteOffset + start, length);
    if (length > sharedBytesMax) return from.slice();
    if (this.#used + length > this.#slab.length) {
      this.#slab = new Uint8Array(slabBytes);
      this.#used = 0;
    }
    const copy = new Uint8Array(this.#slab.buffer, this.#used, length);
    this.#used += length;
    copy.set(from);
    return copy;
  }
}
