import { assert, type Clock, MillraceError, type Random, type Timer } from '@millrace/kernel';

export interface SlotPoolOptions {
  readonly slots: number;
  /** How long a claimed slot is kept for an attempt that has not come yet. */
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly random: Random;
}

export interface Lease {
  readonly lease: string;
  readonly leaseMs: number;
}

/**
 * Who has this runner's slots. A slot is free, reserved (a poll for claims is out for it), leased (claimed, and given
 * back if no attempt comes for it in time) or in use. Polls go out only for free slots, so a claim that nobody can serve
 * waits at Temporal, where people see it.
 */
export class SlotPool {
  readonly #options: SlotPoolOptions;
  readonly #leases = new Map<string, Timer>();
  readonly #waiters = new Set<() => void>();
  #reserved = 0;
  #inUse = 0;

  constructor(options: SlotPoolOptions) {
    this.#options = options;
  }

  get free(): number {
    return this.#options.slots - this.#reserved - this.#leases.size - this.#inUse;
  }

  get inUse(): number {
    return this.#inUse;
  }

  tryReserve(): boolean {
    if (this.free <= 0) return false;
    this.#reserved += 1;
    return true;
  }

  /** Resolves once a slot is reserved; rejects with the signal's reason. */
  reserve(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error);
      if (this.tryReserve()) return resolve();
      const wake = (): void => {
        if (!this.tryReserve()) return;
        this.#waiters.delete(wake);
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      const onAbort = (): void => {
        this.#waiters.delete(wake);
        reject(signal.reason as Error);
      };
      this.#waiters.add(wake);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  unreserve(): void {
    assert(this.#reserved > 0, 'a slot is reserved');
    this.#reserved -= 1;
    this.#wake();
  }

  /** Takes a slot for a claim. The claim's own reservation still counts until the poll is over. */
  lease(): Lease {
    const { clock, random, leaseMs } = this.#options;
    const lease = random.hex(8);
    // Uneven times keep two attempts that each hold a part of the slots from meeting in step for ever.
    const keptMs = Math.round(leaseMs * (1 + random.float() / 2));
    const timer = clock.schedule(keptMs, () => {
      this.#leases.delete(lease);
      this.#wake();
    });
    this.#leases.set(lease, timer);
    return { lease, leaseMs: keptMs };
  }

  /** Turns leases into slots in use; all of them or, when one has lapsed, none. */
  use(leases: readonly string[]): void {
    for (const lease of leases) {
      if (this.#leases.has(lease)) continue;
      throw new MillraceError('lease-lapsed', `Lease ${lease} of a slot has lapsed or was used before.`);
    }
    for (const lease of leases) {
      this.#leases.get(lease)?.cancel();
      this.#leases.delete(lease);
    }
    this.#inUse += leases.length;
  }

  /** Gives slots in use back. */
  release(count: number): void {
    this.#inUse -= count;
    assert(this.#inUse >= 0, 'no more slots are released than were in use');
    this.#wake();
  }

  /** Stops the timers. */
  close(): void {
    for (const timer of this.#leases.values()) timer.cancel();
    this.#leases.clear();
  }

  #wake(): void {
    // A waiter that is served takes itself out of the set.
    for (const wake of this.#waiters) {
      if (this.free <= 0) return;
      wake();
    }
  }
}
