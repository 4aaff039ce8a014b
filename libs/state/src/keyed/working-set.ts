import { ExistenceFilter, OffHeapCache } from '@millrace/cache';
import { assert, type Clock } from '@millrace/kernel';

/** What a working set holds: decoded state of one key, owned by one keyed state. */
export interface Resident {
  /** Records in flight that use it; above 0 it stays. */
  pins: number;
  /** Used since the hand last passed. */
  referenced: boolean;
  /** Place in the ring, kept by the working set. */
  ringIndex: number;
  /** Estimated bytes, kept by the working set. */
  bytes: number;
  readonly owner: ResidentOwner;
  /** Writes unsaved changes, then leaves its owner's index; false when it cannot be written yet, and then it stays. */
  evict(): boolean;
}

export interface ResidentOwner {
  /** Some of its residents have been evicted, one after the other. */
  evicted(): void;
}

export interface WorkingSetOptions {
  /** Estimated bytes of decoded state to hold. Pinned entries may exceed it, by what the records in flight touch. */
  readonly bytesMax: number;
  /** Bytes of stored values to hold beside it, outside of the engine's heap. 0 or none: no cache. */
  readonly cacheBytesMax?: number;
  /**
   * Bytes for the keys that exist, so that those which do not need no request: worth it for stores across a network. 0 or
   * none: no filter. When they do not suffice, key groups are given up one by one.
   */
  readonly existenceBytesMax?: number;
  readonly clock: Clock;
}

/** Steps of the hand for one call, so that a ring full of pinned entries costs a bounded time. */
const stepsMax = 1024;
/** Entries leave in groups, so that their changes are written in groups: the ring is emptied to this share. */
const restShare = 7 / 8;

/**
 * What a slot keeps at hand of the state of all its operators together: entries decoded, as many as the processor's own
 * caches make worth it, and behind them stored values as bytes, as many as memory allows. Entries are evicted by second
 * chance (CLOCK): one goes when the hand finds it neither pinned nor used since its last pass.
 */
export class WorkingSet {
  readonly bytesMax: number;
  bytes = 0;
  evictions = 0;
  readonly cache: OffHeapCache;
  readonly existence: ExistenceFilter;
  readonly #ring: Resident[] = [];
  #hand = 0;

  constructor(options: WorkingSetOptions) {
    this.bytesMax = options.bytesMax;
    const { clock } = options;
    this.cache = new OffHeapCache({ bytesMax: options.cacheBytesMax ?? 0, clock });
    const bytesMax = options.existenceBytesMax ?? 0;
    this.existence = new ExistenceFilter({ bytesMax, clock, whenFull: 'turn-off', setting: 'slotMemory' });
  }

  get size(): number {
    return this.#ring.length;
  }

  add(resident: Resident): void {
    resident.ringIndex = this.#ring.length;
    this.#ring.push(resident);
    this.bytes += resident.bytes;
  }

  resize(resident: Resident, bytes: number): void {
    this.bytes += bytes - resident.bytes;
    resident.bytes = bytes;
  }

  remove(resident: Resident): void {
    const last = this.#ring.pop();
    assert(last !== undefined && resident.ringIndex >= 0, 'entry is not in the working set');
    if (last !== resident) {
      this.#ring[resident.ringIndex] = last;
      last.ringIndex = resident.ringIndex;
    }
    resident.ringIndex = -1;
    this.bytes -= resident.bytes;
  }

  /** When the bytes do not fit: evicts until there is room again or the hand has made its steps. */
  reclaim(): void {
    if (this.bytes <= this.bytesMax) return;
    const rest = this.bytesMax * restShare;
    let owner: ResidentOwner | undefined;
    for (let step = 0; step < stepsMax && this.bytes > rest && this.#ring.length > 0; step++) {
      if (this.#hand >= this.#ring.length) this.#hand = 0;
      const resident = this.#ring[this.#hand] as Resident;
      if (resident.pins > 0) {
        this.#hand++;
      } else if (resident.referenced) {
        resident.referenced = false;
        this.#hand++;
      } else {
        if (owner !== resident.owner) owner?.evicted();
        owner = resident.owner;
        if (!resident.evict()) {
          this.#hand++;
          continue;
        }
        this.remove(resident);
        this.evictions++;
      }
    }
    owner?.evicted();
  }
}
