/**
 * Memory for the reads of one run, used again for each of them: what is read is consumed before the next read begins.
 * Reads of a megabyte into new memory each cost the engine a collection of old objects for every few of them.
 */
export class ReadBuffer {
  readonly #bytesMax: number;
  #bytes: Uint8Array | undefined;
  /** Cleared when a file takes no notice of what it is lent. */
  #isUsed = true;

  /** Longer reads are not for it. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** What to lend to a read of `length` bytes. */
  lend(length: number): Uint8Array | undefined {
    if (!this.#isUsed || length > this.#bytesMax) return undefined;
    if (this.#bytes === undefined || this.#bytes.length < length) this.#bytes = new Uint8Array(length);
    return this.#bytes;
  }

  /** What came back. Memory that the answer does not lie in is not ours any more: see {@link FileReader.read}. */
  returned(lent: Uint8Array | undefined, answer: Uint8Array): void {
    if (lent === undefined || lent.buffer === answer.buffer) return;
    this.#bytes = undefined;
    this.#isUsed = false;
  }

  /** After a read that failed: somebody may still write to it. */
  lost(): void {
    this.#bytes = undefined;
  }
}
