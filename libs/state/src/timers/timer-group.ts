import { compareTimers, type QueuedTimer } from './stored-timer.ts';

/** A change that came while the group's head was being read. */
type Change = readonly [kind: 'add' | 'remove', timer: QueuedTimer];

/**
 * The earliest timers of one key group. All of the group's timers are in the table; those up to the last one held here
 * are here too. When none is held and the group is not complete, the next ones have to be read.
 */
export class TimerGroup {
  readonly keyGroup: number;
  /** True when the table has no timer of the group beyond those held. */
  complete: boolean;
  /** Place in the heap of groups. */
  heapIndex = -1;
  /** In order; those before `#first` have been taken. */
  #timers: QueuedTimer[] = [];
  #first = 0;
  /** Changes since a read began; undefined when none is under way. */
  #changes: Change[] | undefined;
  /** While none is held: no timer of the table is earlier. */
  #boundMs: number;

  constructor(keyGroup: number, complete: boolean, boundMs = Number.NEGATIVE_INFINITY) {
    this.keyGroup = keyGroup;
    this.complete = complete;
    this.#boundMs = boundMs;
  }

  get size(): number {
    return this.#timers.length - this.#first;
  }

  get needsRead(): boolean {
    return this.size === 0 && !this.complete;
  }

  /**
   * Earliest time; Infinity when there is none. When it has to be read first, a time before which there is none, which
   * is −Infinity when nothing is known.
   */
  get headMs(): number {
    const head = this.#timers[this.#first];
    if (head !== undefined) return head.timeMs;
    return this.complete ? Number.POSITIVE_INFINITY : this.#boundMs;
  }

  /** False when the timer is held already. At most `heldMax` stay held. */
  add(timer: QueuedTimer, heldMax: number): boolean {
    this.#changes?.push(['add', timer]);
    const at = this.#lowerBound(timer);
    const there = this.#timers[at];
    if (there !== undefined && compareTimers(there, timer) === 0) return false;
    if (at === this.#timers.length && !this.complete) {
      this.#boundMs = Math.min(this.#boundMs, timer.timeMs);
      return true;
    }
    this.#timers.splice(at, 0, timer);
    if (this.size > heldMax) {
      this.#timers.length = this.#first + Math.ceil(heldMax / 2);
      this.complete = false;
    }
    return true;
  }

  remove(timer: QueuedTimer): void {
    this.#changes?.push(['remove', timer]);
    const at = this.#lowerBound(timer);
    const there = this.#timers[at];
    if (there !== undefined && compareTimers(there, timer) === 0) this.#timers.splice(at, 1);
  }

  take(): QueuedTimer {
    const timer = this.#timers[this.#first++] as QueuedTimer;
    if (this.#first === this.#timers.length) {
      this.#timers = [];
      this.#first = 0;
    } else if (this.#first >= 64 && this.#first * 2 > this.#timers.length) {
      this.#timers = this.#timers.slice(this.#first);
      this.#first = 0;
    }
    this.#changes?.push(['remove', timer]);
    return timer;
  }

  beginRead(): void {
    this.#changes = [];
  }

  /** What the table had when the read began; `ended`: nothing beyond it. */
  endRead(timers: readonly QueuedTimer[], ended: boolean, heldMax: number): void {
    const changes = this.#changes ?? [];
    this.#changes = undefined;
    this.#boundMs = Number.NEGATIVE_INFINITY;
    this.#timers = [...timers];
    this.#first = 0;
    this.complete = ended;
    for (const [kind, timer] of changes) {
      if (kind === 'add') this.add(timer, heldMax);
      else this.remove(timer);
    }
  }

  #lowerBound(timer: QueuedTimer): number {
    let low = this.#first;
    let high = this.#timers.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compareTimers(this.#timers[middle] as QueuedTimer, timer) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
