export interface StoredEntry {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  /** Epoch milliseconds from which it no longer exists; 0 means never. */
  readonly expiresAtMs: number;
}

/** A sorted map from byte strings to entries; sorts when an ordered read follows new keys. */
export class SortedEntries {
  readonly #entries = new Map<string, StoredEntry>();
  #order: string[] = [];
  #sorted = true;
  bytes = 0;

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): StoredEntry | undefined {
    return this.#entries.get(key);
  }

  set(key: string, entry: StoredEntry): void {
    const old = this.#entries.get(key);
    this.bytes += entry.value.length - (old === undefined ? -entry.key.length : old.value.length);
    if (old === undefined) {
      this.#order.push(key);
      this.#sorted = false;
    }
    this.#entries.set(key, entry);
  }

  delete(key: string): void {
    const old = this.#entries.get(key);
    if (old === undefined) return;
    this.bytes -= old.key.length + old.value.length;
    this.#entries.delete(key);
    this.#sorted = false;
  }

  /** Entries of `[start, end)` in order, as of now. */
  range(start: string, end: string | undefined): StoredEntry[] {
    if (!this.#sorted) {
      this.#order = [...this.#entries.keys()].toSorted((a, b) => (a < b ? -1 : 1));
      this.#sorted = true;
    }
    const out: StoredEntry[] = [];
    for (let i = this.#lowerBound(start); i < this.#order.length; i++) {
      const key = this.#order[i] as string;
      if (end !== undefined && key >= end) break;
      out.push(this.#entries.get(key) as StoredEntry);
    }
    return out;
  }

  #lowerBound(key: string): number {
    let low = 0;
    let high = this.#order.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#order[middle] as string) < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
