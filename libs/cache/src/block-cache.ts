import { assert } from '@millrace/kernel';

/**
 * Who holds cached items, each in a slot of its own: a hit touches only the owner's arrays and hashes nothing.
 * The owner allocates `visited` and `positions` (filled with -1), one element a slot.
 */
export interface BlockOwner {
  /** 1 where the slot's item was used since the cache's hand last passed; the owner sets it at each hit. */
  readonly visited: Uint8Array;
  /** Where the slot's item sits in the cache, -1 when it is not cached. Only the cache writes it. */
  readonly positions: Int32Array;
  /** Forgets the item in `slot`. Called before its bytes are given to another. */
  evict(slot: number): void;
}

export interface BlockCacheOptions {
  readonly bytesMax: number;
}

/**
 * A byte budget shared by any number of owners, with second-chance (CLOCK) eviction. It holds no items itself. The
 * limit holds at every instant: room is made before an item is admitted, and an item that cannot fit is refused.
 */
export class BlockCache {
  readonly bytesMax: number;
  /** Looks at slots that had their item, and at such that had not; owners count them. */
  hits = 0;
  misses = 0;
  evictions = 0;
  #bytes = 0;
  #reservedBytes = 0;
  #entries = 0;
  #hand = 0;
  /** Positions in use or used before; those free again are in `#free`. */
  #end = 0;
  readonly #free: number[] = [];
  readonly #owners: Array<BlockOwner | undefined> = [];
  readonly #slots: number[] = [];
  readonly #sizes: number[] = [];

  constructor(options: BlockCacheOptions) {
    assert(options.bytesMax >= 0, `bytesMax ${options.bytesMax} is negative`);
    this.bytesMax = options.bytesMax;
  }

  /** Bytes of the items admitted. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Bytes that owners keep outside of the cache and charge to its budget. */
  get reservedBytes(): number {
    return this.#reservedBytes;
  }

  get entries(): number {
    return this.#entries;
  }

  /** Makes room and charges `bytes` for the item in `slot`; false when it does not fit, and then nothing is kept. */
  admit(owner: BlockOwner, slot: number, bytes: number): boolean {
    assert(owner.positions[slot] === -1, `slot ${slot} is cached already`);
    if (!this.#makeRoom(bytes)) return false;
    const position = this.#free.pop() ?? this.#end++;
    this.#owners[position] = owner;
    this.#slots[position] = slot;
    this.#sizes[position] = bytes;
    owner.positions[slot] = position;
    owner.visited[slot] = 0;
    this.#bytes += bytes;
    this.#entries++;
    return true;
  }

  /** Gives back what every slot of `owner` was charged, without calling `evict`. */
  release(owner: BlockOwner): void {
    for (let slot = 0; slot < owner.positions.length; slot++) {
      const position = owner.positions[slot] as number;
      if (position >= 0) this.#remove(owner, position);
    }
  }

  /**
   * Charges bytes that the caller needs in any case (indexes, filters), at the expense of what is cached. Beyond the
   * whole budget it still counts them: then nothing is cached.
   */
  reserve(bytes: number): void {
    this.#reservedBytes += bytes;
    this.#makeRoom(0);
  }

  unreserve(bytes: number): void {
    assert(bytes <= this.#reservedBytes, 'more bytes given back than were reserved');
    this.#reservedBytes -= bytes;
  }

  #makeRoom(bytes: number): boolean {
    const room = this.bytesMax - this.#reservedBytes - bytes;
    if (room < 0 && this.#entries === 0) return false;
    if (room < 0 && bytes > 0) return false;
    while (this.#bytes > room && this.#entries > 0) this.#evictOne();
    return room >= 0;
  }

  #evictOne(): void {
    for (;;) {
      if (this.#hand >= this.#end) this.#hand = 0;
      const position = this.#hand++;
      const owner = this.#owners[position];
      if (owner === undefined) continue;
      const slot = this.#slots[position] as number;
      if (owner.visited[slot] === 1) {
        owner.visited[slot] = 0;
        continue;
      }
      owner.evict(slot);
      this.#remove(owner, position);
      this.evictions++;
      return;
    }
  }

  #remove(owner: BlockOwner, position: number): void {
    owner.positions[this.#slots[position] as number] = -1;
    this.#owners[position] = undefined;
    this.#bytes -= this.#sizes[position] as number;
    this.#entries--;
    this.#free.push(position);
  }
}
