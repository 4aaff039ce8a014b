import type { CacheAnswer, CachedValue, ExistenceScope, OffHeapCache } from '@millrace/cache';
import type { ByteWriter } from '@millrace/kernel';
import type { WriteBatch } from '../write-batch.ts';

/**
 * What one table has in the slot's off-heap cache. It has one writer, who keeps the cache in step: every write of what is
 * read by key goes there, too, and what was read from the table goes there when no write can have come between. Behind it
 * the existence filter, where there is one, knows most keys that the table does not have: every write passes here.
 */
export class TableCache {
  readonly #cache: OffHeapCache;
  readonly #owner: number;
  readonly #existing: ExistenceScope | undefined;

  constructor(cache: OffHeapCache, existing?: ExistenceScope) {
    this.#cache = cache;
    this.#existing = existing;
    this.#owner = cache.addOwner();
  }

  get(key: ByteWriter, into: CachedValue): CacheAnswer {
    const { bytes, position } = key;
    const cached = this.#cache.get(this.#owner, bytes, 0, position, into);
    if (cached !== 'unknown' || this.#existing === undefined) return cached;
    return this.#existing.isAbsent(keyGroupOf(bytes, 0), bytes, 0, position) ? 'absent' : 'unknown';
  }

  /** What the table says of a key; the stored value has its expiry within itself. */
  learn(key: ByteWriter, value: CachedValue | undefined): void {
    const { bytes, position } = key;
    if (value === undefined) this.#cache.putAbsent(this.#owner, bytes, 0, position);
    else this.#cache.put(this.#owner, bytes, 0, position, value.bytes, value.start, value.end, 0);
  }

  /** The last entry of a batch that is on its way to the table. */
  wrote(batch: WriteBatch): void {
    const { bytes } = batch.arena;
    const last = batch.count - 1;
    const start = batch.keyStart(last);
    const end = batch.valueStart(last);
    if (this.#existing !== undefined) {
      const keyGroup = keyGroupOf(bytes, start);
      if (batch.isDelete(last)) this.#existing.remove(keyGroup, bytes, start, end);
      else this.#existing.add(keyGroup, bytes, start, end, batch.expiresAtMs(last));
    }
    if (batch.isDelete(last)) this.#cache.putAbsent(this.#owner, bytes, start, end);
    else this.#cache.put(this.#owner, bytes, start, end, bytes, end, batch.valueEnd(last), batch.expiresAtMs(last));
  }

  /** Others may own the key groups from now on. */
  close(): void {
    this.#existing?.close();
  }
}

/** Stored keys begin with their key group, two bytes, big-endian. */
function keyGroupOf(key: Uint8Array, start: number): number {
  return ((key[start] as number) << 8) | (key[start + 1] as number);
}
