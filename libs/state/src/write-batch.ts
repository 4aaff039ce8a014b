import { ByteWriter, MillraceError } from '@millrace/kernel';

/** Where an entry of a batch lies in its arena. */
const fieldsPerEntry = 4;
const tombstone = 0xffff_ffff;

/** The arrays of a {@link WriteBatch}, as it travels between processes. */
export interface PackedBatch {
  readonly arena: Uint8Array;
  /** Four numbers an entry: start of its key, end of its key, end of its value, and 0 or the mark of a delete. */
  readonly entries: Uint32Array;
  /** Epoch milliseconds, one an entry. */
  readonly expiry: Float64Array;
}

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
  #entries: Uint32Array = new Uint32Array(256 * fieldsPerEntry);
  #expiry: Float64Array = new Float64Array(256);

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

  /** Views of what was written; valid until the next change. */
  packed(): PackedBatch {
    return {
      arena: this.arena.written(),
      entries: this.#entries.subarray(0, this.count * fieldsPerEntry),
      expiry: this.#expiry.subarray(0, this.count),
    };
  }

  /**
   * Becomes a batch that came from elsewhere; keeps the arrays and does not copy them. Throws `bad-argument` when they
   * contradict each other, and is unchanged then.
   */
  load({ arena, entries, expiry }: PackedBatch): void {
    const fits = entries.length === expiry.length * fieldsPerEntry && entriesFit(entries, arena.length);
    if (!fits) throw new MillraceError('bad-argument', 'the arrays of a write batch contradict each other');
    this.arena.bytes = arena;
    this.arena.view = new DataView(arena.buffer, arena.byteOffset, arena.byteLength);
    this.arena.position = arena.length;
    this.#entries = entries;
    this.#expiry = expiry;
    this.count = expiry.length;
  }

  /** Forgets the entries and keeps the buffers. */
  reset(): void {
    this.count = 0;
    this.arena.reset();
  }

  #grow(): void {
    const entries = new Uint32Array(Math.max(64 * fieldsPerEntry, this.#entries.length * 2));
    entries.set(this.#entries);
    this.#entries = entries;
    const expiry = new Float64Array(Math.max(64, this.#expiry.length * 2));
    expiry.set(this.#expiry);
    this.#expiry = expiry;
  }
}

function entriesFit(entries: Uint32Array, arenaBytes: number): boolean {
  for (let at = 0; at < entries.length; at += fieldsPerEntry) {
    const keyStart = entries[at] as number;
    const valueStart = entries[at + 1] as number;
    const valueEnd = entries[at + 2] as number;
    const mark = entries[at + 3];
    if (keyStart > valueStart || valueStart > valueEnd || valueEnd > arenaBytes) return false;
    if (mark !== 0 && mark !== tombstone) return false;
  }
  return true;
}
