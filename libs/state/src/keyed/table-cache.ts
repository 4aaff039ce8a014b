import type { CacheAnswer, CachedValue, OffHeapCache } from '@millrace/cache';
import type { ByteWriter } from '@millrace/kernel';
import type { WriteBatch } from '../write-batch.ts';

/**
 * What one table has in the slot's off-heap cache. It has one writer, who keeps the cache in step: every write of what is
 * read by key goes there, too, and what was read from the table goes there when no write can have come between.
 */
export class TableCache {
  readonly #cache: OffHeapCache;
  readonly #owner: number;

  constructor(cache: OffHeapCache) {
    this.#cache = cache;
    this.#owner = cache.addOwner();
  }

  get(key: ByteWriter, into: CachedValue): CacheAnswer {
    return this.#cache.get(this.#owner, key.bytes, 0, key.position, into);
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
    if (batch.isDelete(last)) this.#cache.putAbsent(this.#owner, bytes, start, end);
    else this.#cache.put(this.#owner, bytes, start, end, bytes, end, batch.valueEnd(last), batch.expiresAtMs(last));
  }
}
