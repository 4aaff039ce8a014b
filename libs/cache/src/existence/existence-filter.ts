import { assert, type Clock, type KeyGroupRange, MillraceError, maxParallelismLimit, murmur3 } from '@millrace/kernel';
import { KeyLog, never } from './key-log.ts';

export interface ExistenceFilterOptions {
  /** For keys and hash table together. 0: there is no filter, and nothing is ever known to be absent. */
  readonly bytesMax: number;
  readonly clock: Clock;
  /**
   * What happens when a key comes and every key that is held may still exist. `fail`: `add` throws
   * `cache-filter-full`. `turn-off`: the key's group is no longer answered for, and the memory of its keys is free.
   */
  readonly whenFull: 'fail' | 'turn-off';
  /** The setting that `bytesMax` comes from, for the message of the error. */
  readonly setting: string;
}

/** What one state of one table has in the filter. */
export interface ExistenceScopeOptions {
  /** The key groups whose every write passes through this scope. */
  readonly keyGroups: KeyGroupRange;
  /** The longest time to live that a stored key of this state may have, those of earlier versions of the job included. 0: for ever. */
  readonly ttlMs: number;
  /** True when the state has no keys yet. Otherwise nothing is absent for one `ttlMs`: what exists then has been added since. */
  readonly isEmpty: boolean;
}

export interface ExistenceStats {
  /** Keys held, expired ones that were not met yet included. */
  entries: number;
  bytes: number;
  /** Looks that answered "absent", each a request saved. */
  absent: number;
  /** Looks that found the key, and such that could not know (learning, turned off, the clock went back). */
  present: number;
  unknown: number;
  /** Key groups turned off because memory was short, over the life of the filter. */
  groupsTurnedOff: number;
}

/** Expiries are kept in these steps, rounded up: a key is held a little too long, never too short. */
const stepMs = 64;
const scopesMax = 65_536;

/** Beyond what is extrapolated, for keys that come unevenly. */
const addMargin = 1.1;

/** A group is answered for, or not: turned off, handed over, or of a scope that is closed. */
const off = 0;
const on = 1;

/**
 * Which keys exist, exactly: a key that is not held does not exist, so that no request has to ask for it. It is bounded by
 * time to live: each key is held until its absolute expiry. Memory is fixed (`bytesMax`), there is no rehash and no sweep by
 * time; expired keys make room when it is needed. Evicting a key that has not expired would make the filter lie, so it
 * refuses (see `whenFull`). One for each slot, shared by all states through scopes.
 */
export class ExistenceFilter {
  readonly #options: ExistenceFilterOptions;
  readonly #log: KeyLog;
  readonly #originMs: number;
  readonly #scopes: Array<ExistenceScope | undefined> = [];
  #absent = 0;
  #present = 0;
  #unknown = 0;
  #groupsTurnedOff = 0;
  /** Keys that expired up to this time may be forgotten. When the clock has gone back before it, they may exist again. */
  #forgottenUntil = Number.NEGATIVE_INFINITY;
  #now = 0;
  #earliestExpiry = never;

  constructor(options: ExistenceFilterOptions) {
    assert(options.bytesMax >= 0, `bytesMax ${options.bytesMax} is negative`);
    this.#options = options;
    this.#log = new KeyLog(options.bytesMax);
    this.#originMs = options.clock.nowMs();
  }

  get isOn(): boolean {
    return this.#options.bytesMax > 0;
  }

  get stats(): ExistenceStats {
    return {
      entries: this.#log.entries,
      bytes: this.#log.bytes,
      absent: this.#absent,
      present: this.#present,
      unknown: this.#unknown,
      groupsTurnedOff: this.#groupsTurnedOff,
    };
  }

  /** For one state of one table, until it is closed. When key groups come back after they were away, open a new one. */
  openScope(options: ExistenceScopeOptions): ExistenceScope {
    const { keyGroups } = options;
    assert(this.#scopes.length < scopesMax, `more than ${scopesMax} scopes`);
    assert(keyGroups.start >= 0 && keyGroups.end < maxParallelismLimit, `key group ${keyGroups.end} is out of range`);
    const scope = new ExistenceScope(this, this.#scopes.length, options, this.#options.clock.nowMs());
    this.#scopes.push(scope);
    return scope;
  }

  /** For {@link ExistenceScope} only. */
  isAbsent(scope: ExistenceScope, keyGroup: number, key: Uint8Array, start: number, end: number): boolean {
    const nowMs = this.#options.clock.nowMs();
    const now = this.#stepOf(nowMs);
    if (!this.isOn || nowMs < scope.trustedFromMs || now < this.#forgottenUntil || !scope.answersFor(keyGroup)) {
      this.#unknown++;
      return false;
    }
    const tag = tagOf(scope, keyGroup);
    const entry = this.#log.find(hashOf(tag, key, start, end), tag, key, start, end);
    if (entry >= 0 && !isExpired(this.#log.expiryOf(entry), now)) {
      this.#present++;
      return false;
    }
    this.#absent++;
    return true;
  }

  /** For {@link ExistenceScope} only. */
  add(scope: ExistenceScope, keyGroup: number, key: Uint8Array, start: number, end: number, expiresAtMs: number): void {
    if (!this.isOn || !scope.answersFor(keyGroup)) return;
    const tag = tagOf(scope, keyGroup);
    const hash = hashOf(tag, key, start, end);
    const expiry = this.#expiryStep(expiresAtMs);
    const entry = this.#log.find(hash, tag, key, start, end);
    // Too long is safe, so it does not matter in which order writes and what was read arrive.
    if (entry >= 0) return this.#log.setExpiry(entry, Math.max(expiry, this.#log.expiryOf(entry)));
    this.#now = this.#stepOf(this.#options.clock.nowMs());
    this.#earliestExpiry = never;
    if (this.#log.insert(hash, tag, key, start, end, expiry, this.#stays)) return;
    if (this.#options.whenFull === 'fail') throw this.#full(scope, end - start);
    scope.turnOff({ start: keyGroup, end: keyGroup });
    this.#groupsTurnedOff++;
  }

  /** For {@link ExistenceScope} only. */
  remove(scope: ExistenceScope, keyGroup: number, key: Uint8Array, start: number, end: number): void {
    const tag = tagOf(scope, keyGroup);
    this.#log.remove(hashOf(tag, key, start, end), tag, key, start, end);
  }

  /** For {@link ExistenceScope} only. */
  closed(id: number): void {
    this.#scopes[id] = undefined;
  }

  /** Asked for each entry that lies in the way of a new one. */
  readonly #stays = (tag: number, expiry: number): boolean => {
    if (this.#scopes[tag >>> 15]?.answersFor(tag & 0x7fff) !== true) return false;
    if (isExpired(expiry, this.#now)) {
      if (expiry > this.#forgottenUntil) this.#forgottenUntil = expiry;
      return false;
    }
    if (expiry < this.#earliestExpiry) this.#earliestExpiry = expiry;
    return true;
  };

  #stepOf(nowMs: number): number {
    return Math.floor((nowMs - this.#originMs) / stepMs);
  }

  #expiryStep(expiresAtMs: number): number {
    if (expiresAtMs === 0) return never;
    const step = Math.ceil((expiresAtMs - this.#originMs) / stepMs);
    return Math.max(0, Math.min(step, never));
  }

  #full(scope: ExistenceScope, keyBytes: number): MillraceError {
    const { setting, bytesMax } = this.#options;
    const addBytes = this.#bytesToAdd(scope);
    const mib = (bytes: number): number => Math.ceil(bytes / (1024 * 1024));
    return new MillraceError(
      'cache-filter-full',
      `the existence filter holds ${this.#log.entries} keys in ${mib(bytesMax)} MiB, none has expired, and a key of ` +
        `${keyBytes} bytes does not fit: add at least ${mib(addBytes)} MiB to the setting "${setting}"`,
      { details: { setting, entries: this.#log.entries, bytesMax, addBytes } },
    );
  }

  /** Full after `span` of a time to live: the rest of it brings keys at the same rate. Keys that never expire: twice as much. */
  #bytesToAdd(scope: ExistenceScope): number {
    const { bytesMax } = this.#options;
    if (scope.ttlMs === 0 || this.#earliestExpiry === never) return bytesMax;
    const spanMs = scope.ttlMs - (this.#earliestExpiry - this.#now) * stepMs;
    const share = Math.min(1, Math.max(spanMs / scope.ttlMs, 1 / 64));
    return Math.max(Math.ceil(bytesMax * (addMargin / share - 1)), Math.ceil(bytesMax / 8));
  }
}

/**
 * The keys of one state. `keyGroup` is the group of the key, and the key is whatever bytes name it within the state. Whoever
 * writes the state calls `add` before a write can reach the store, and asks before it reads.
 */
export class ExistenceScope {
  readonly id: number;
  readonly ttlMs: number;
  readonly firstKeyGroup: number;
  /** Before this time (epoch milliseconds) nothing is known to be absent. */
  readonly trustedFromMs: number;
  readonly #filter: ExistenceFilter;
  readonly #groups: Uint8Array;

  constructor(filter: ExistenceFilter, id: number, options: ExistenceScopeOptions, nowMs: number) {
    const { keyGroups, ttlMs, isEmpty } = options;
    this.#filter = filter;
    this.id = id;
    this.ttlMs = ttlMs;
    this.firstKeyGroup = keyGroups.start;
    this.#groups = new Uint8Array(keyGroups.end - keyGroups.start + 1).fill(on);
    if (isEmpty) this.trustedFromMs = Number.NEGATIVE_INFINITY;
    else this.trustedFromMs = ttlMs === 0 ? Number.POSITIVE_INFINITY : nowMs + ttlMs;
  }

  /** True when the key does not exist for certain; no request is needed then. */
  isAbsent(keyGroup: number, key: Uint8Array, start: number, end: number): boolean {
    return this.#filter.isAbsent(this, keyGroup, key, start, end);
  }

  /**
   * The key exists until `expiresAtMs` (epoch milliseconds, 0 for ever): it was written, or read from the store. Throws
   * `cache-filter-full` when the filter is to fail rather than turn itself off.
   */
  add(keyGroup: number, key: Uint8Array, start: number, end: number, expiresAtMs: number): void {
    this.#filter.add(this, keyGroup, key, start, end, expiresAtMs);
  }

  /** The key was deleted. */
  remove(keyGroup: number, key: Uint8Array, start: number, end: number): void {
    this.#filter.remove(this, keyGroup, key, start, end);
  }

  /** Stops answering for key groups: others own them now. Their memory is free for other keys. */
  turnOff(keyGroups: KeyGroupRange): void {
    this.#groups.fill(off, keyGroups.start - this.firstKeyGroup, keyGroups.end - this.firstKeyGroup + 1);
  }

  /** Stops answering for all. Idempotent. */
  close(): void {
    this.#groups.fill(off);
    this.#filter.closed(this.id);
  }

  answersFor(keyGroup: number): boolean {
    return this.#groups[keyGroup - this.firstKeyGroup] === on;
  }
}

function tagOf(scope: ExistenceScope, keyGroup: number): number {
  return (scope.id << 15) | keyGroup;
}

/** Signed, as typed arrays give it back. */
function hashOf(tag: number, key: Uint8Array, start: number, end: number): number {
  return murmur3(key, start, end, tag) | 0;
}

function isExpired(expiry: number, now: number): boolean {
  return expiry !== never && expiry <= now;
}
