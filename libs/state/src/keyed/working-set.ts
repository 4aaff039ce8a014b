import { assert } from '@millrace/kernel';

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
  /** Writes unsaved changes to the table, then leaves its owner's index. */
  evict(): void;
}

export interface WorkingSetOptions {
  /** Estimated bytes of decoded state to hold. Pinned entries may exceed it, by what the records in flight touch. */
  readonly bytesMax: number;
}

/** Steps of the hand for one call, so that a ring full of pinned entries costs a bounded time. */
const stepsMax = 512;

/**
 * The decoded state that a slot keeps at hand, of all its operators and states together. Evicts by second chance
 * (CLOCK): an entry goes when the hand finds it neither pinned nor used since its last pass.
 */
export class WorkingSet {
  readonly bytesMax: number;
  bytes = 0;
  evictions = 0;
  readonly #ring: Resident[] = [];
  #hand = 0;

  constructor(options: WorkingSetOptions) {
    this.bytesMax = options.bytesMax;
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

  /** Evicts until the bytes fit or the hand has made its steps. */
  reclaim(): void {
    for (let step = 0; step < stepsMax && this.bytes > this.bytesMax && this.#ring.length > 0; step++) {
      if (this.#hand >= this.#ring.length) this.#hand = 0;
      const resident = this.#ring[this.#hand] as Resident;
      if (resident.pins > 0) {
        this.#hand++;
      } else if (resident.referenced) {
        resident.referenced = false;
        this.#hand++;
      } else {
        resident.evict();
        this.remove(resident);
        this.evictions++;
      }
    }
  }
}
