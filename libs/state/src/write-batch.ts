import { ByteWriter } from '@millrace/kernel';

/** Where an entry of a batch lies in its arena. */
const fieldsPerEntry = 4;
const tombstone = 0xffff_ffff;

/**
 * Puts and deletes in order, packed in one arena: for entry `i`, the key is `[keyStart, valueStart)` and the value
 * `[valueStart, valueEnd)`. Writers append straight into `arena`, so a value is encoded once and copied once.
 * ```
 * batch.begin();  … the key's bytes go to batch.arena …
 * batch.endKey(); … the value's bytes …
 * batch.put(expiresAtMs);   // or batch.delete() right after endKey()
 * ```
 */
export class WriteBatch {
  readonly arena = new ByteWriter(4096);
  count = 0;
  #entries = new Uint32Array(256 * fieldsPerEntry);
  #expiry = new Float64Array(256);

  /** Starts an entry; the caller then writes the key to `arena`. */
  begin(): void {
    if ((this.count + 1) * fieldsPerEntry > this.#entries.length) this.#grow();
    this.#entries[this.count * fieldsPerEntry] = this.arena.position;
  }

  /** The key is complete; what follows in `arena` is the value. */
  endKey(): void {
    this.#entries[this.count * fieldsPerEntry + 1] = this.arena.position;
  }

  /** Completes a put. `expiresAtMs` 0 means never. */
  put(expiresAtMs = 0): void {
    const at = this.count * fieldsPerEntry;
    this.#entries[at + 2] = this.arena.position;
    this.#entries[at + 3] = 0;
    this.#expiry[this.count++] = expiresAtMs;
  }

  /** Completes a delete of the key just written. */
  delete(): void {
    const at = this.count * fieldsPerEntry;
    this.#entries[at + 2] = this.#entries[at + 1] as number;
    this.#entries[at + 3] = tombstone;
    this.#expiry[this.count++] = 0;
  }

  keyStart(index: number): number {
    return this.#entries[index * fieldsPerEntry] as number;
  }

  valueStart(index: number): number {
    return this.#entries[index * fieldsPerEntry + 1] as number;
  }

  valueEnd(index: number): number {
    return this.#entries[index * fieldsPerEntry + 2] as number;
  }

  isDelete(index: number): boolean {
    return this.#entries[index * fieldsPerEntry + 3] === tombstone;
  }

  /** Epoch milliseconds from which the entry no longer exists; 0 means never. */
  expiresAtMs(index: number): number {
    return this.#expiry[index] as number;
  }

  /** Forgets the entries and keeps the buffers. */
  reset(): void {
    this.count = 0;
    this.arena.reset();
  }

  #grow(): void {
    const entries = new Uint32Array(this.#entries.length * 2);
    entries.set(this.#entries);
    this.#entries = entries;
    const expiry = new Float64Array(this.#expiry.length * 2);
    expiry.set(this.#expiry);
    this.#expiry = expiry;
  }
}
