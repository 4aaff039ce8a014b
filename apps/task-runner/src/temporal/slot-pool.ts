import { assert, type Clock, MillraceError, type Random, type Timer } from '@millrace/kernel';

export interface SlotPoolOptions {
  readonly slots: number;
  /** How long a claimed slot is kept for an attempt that has not come yet. */
  readonly leaseMs: number;
  /** How long a slot is kept for the next attempt of the same job when one has ended. */
  readonly keptMs: number;
  readonly clock: Clock;
  readonly random: Random;
}

/** The slots of one attempt. */
export interface SlotUse {
  readonly job: string;
  readonly leases: readonly string[];
}

export interface Lease {
  readonly lease: string;
  readonly leaseMs: number;
}

/** What a slot that is not free is taken for. */
type Taken =
  | { readonly kind: 'leased'; readonly timer: Timer }
  | { readonly kind: 'used'; readonly by: SlotUse }
  | { readonly kind: 'kept'; readonly job: string; readonly timer: Timer };

/**
 * Who has this runner's slots. A slot is free, reserved (a poll for claims is out for it), leased (claimed, and given
 * back if no attempt comes for it in time), in use, or kept (an attempt has ended, and the next one of the same job may
 * have the slot under the same lease). An attempt may also take over slots that an older one of its job has not left
 * yet. Polls go out only for free slots, so a claim that nobody can serve waits at Temporal, where people see it.
 */
export class SlotPool {
  readonly #options: SlotPoolOptions;
  /** By lease. */
  readonly #taken = new Map<string, Taken>();
  readonly #waiters = new Set<() => void>();
  #reserved = 0;

  constructor(options: SlotPoolOptions) {
    this.#options = options;
  }

  get free(): number {
    return this.#options.slots - this.#reserved - this.#taken.size;
  }

  get keptMs(): number {
    return this.#options.keptMs;
  }

  /** Claimed, and waiting for their attempt. */
  get leased(): number {
    return this.#count('leased');
  }

  get inUse(): number {
    return this.#count('used');
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
    this.#taken.set(lease, { kind: 'leased', timer: clock.schedule(keptMs, () => this.#lapse(lease)) });
    return { lease, leaseMs: keptMs };
  }

  /** Turns leases into slots that this job uses; all of them or, when one has lapsed, none. */
  use(job: string, leases: readonly string[]): SlotUse {
    for (const lease of leases) {
      if (this.#isFor(job, this.#taken.get(lease))) continue;
      throw new MillraceError('lease-lapsed', `Lease ${lease} of a slot has lapsed or was used before.`);
    }
    const use: SlotUse = { job, leases };
    for (const lease of leases) this.#set(lease, { kind: 'used', by: use });
    return use;
  }

  /** Gives back slots in use, but those that a later attempt has taken over; with `keep` its job has a first call on them. */
  release(use: SlotUse, keep: boolean): void {
    const { clock, keptMs } = this.#options;
    for (const lease of use.leases) {
      const taken = this.#taken.get(lease);
      if (taken?.kind !== 'used' || taken.by !== use) continue;
      if (keep)
        this.#set(lease, { kind: 'kept', job: use.job, timer: clock.schedule(keptMs, () => this.#lapse(lease)) });
      else this.#taken.delete(lease);
    }
    this.#wake();
  }

  /** Stops the timers. */
  close(): void {
    for (const lease of this.#taken.keys()) this.#set(lease, undefined);
  }

  #isFor(job: string, taken: Taken | undefined): boolean {
    switch (taken?.kind) {
      case 'leased':
        return true;
      case 'kept':
        return taken.job === job;
      case 'used':
        return taken.by.job === job;
      case undefined:
        return false;
    }
  }

  #set(lease: string, to: Taken | undefined): void {
    const from = this.#taken.get(lease);
    if (from !== undefined && from.kind !== 'used') from.timer.cancel();
    if (to === undefined) this.#taken.delete(lease);
    else this.#taken.set(lease, to);
  }

  #count(wanted: Taken['kind']): number {
    return [...this.#taken.values()].filter(({ kind }) => kind === wanted).length;
  }

  #lapse(lease: string): void {
    this.#taken.delete(lease);
    this.#wake();
  }

  #wake(): void {
    // A waiter that is served takes itself out of the set.
    for (const wake of this.#waiters) {
      if (this.free <= 0) return;
      wake();
    }
  }
}
