import type { KeyValue } from '../keys/key-value.ts';
import type { PrimitiveKey } from '../keys/primitive-key.ts';
import type { StateEntry } from './ports.ts';
import type { Resident } from './working-set.ts';

/** Stands in `values` for a state that is not at hand; `undefined` there means: known to be absent. */
export const unloaded: unique symbol = Symbol('unloaded');

export interface EntryOwner {
  evict(entry: Entry): boolean;
  evicted(): void;
}

/** The entries of one namespace, by key. */
export interface EntrySpace {
  readonly owner: EntryOwner;
  readonly namespace: KeyValue | undefined;
  readonly entries: Map<PrimitiveKey, Entry>;
}

/** What each new entry of an operator starts with; arrays are copied, not shared, except `expiresAtMs` without TTL. */
export interface EntryTemplate {
  readonly values: readonly unknown[];
  readonly sizes: readonly number[];
  readonly expiresAtMs: readonly number[];
  /** Some state has a TTL, so each entry needs expiries of its own. */
  readonly expires: boolean;
}

export function entryTemplate(states: number, expires: boolean): EntryTemplate {
  return {
    values: Array.from({ length: states }, (): unknown => unloaded),
    sizes: Array.from({ length: states }, () => 0),
    expiresAtMs: Array.from({ length: states }, () => 0),
    expires,
  };
}

/** Estimated bytes of an entry before its values: object, arrays, places in map and ring, and the key. */
const overheadBytes = 240;
const perStateBytes = 16;

/**
 * The decoded state of one key in one namespace of one operator. There may be millions: stored keys are encoded anew
 * when they are needed rather than kept.
 */
export class Entry implements StateEntry, Resident {
  readonly key: unknown;
  readonly primitive: PrimitiveKey;
  readonly keyGroup: number;
  readonly space: EntrySpace;
  /** By state index: the value, `undefined` (absent), {@link unloaded}, or the cell of a map. */
  readonly values: unknown[];
  /** By state index: when a value of a state with TTL ends, epoch milliseconds. */
  readonly expiresAtMs: number[];
  /** By state index: estimated bytes. */
  readonly sizes: number[];
  /** Bit for each state index: changed since it was last written to the table. */
  dirty = 0;
  /** Changes that the table does not have: values, and items of maps. */
  changes = 0;
  /** The row is on its way. */
  fetching: Promise<void> | undefined = undefined;
  /** The entry has changes that are saved when the row has come. */
  awaitsRow = false;
  pins = 0;
  referenced = false;
  ringIndex = -1;
  bytes: number;
  /** Times of the timers last registered, so that registering them again costs nothing. */
  eventTimerMs: number | undefined = undefined;
  processingTimerMs: number | undefined = undefined;

  constructor(key: unknown, primitive: PrimitiveKey, keyGroup: number, space: EntrySpace, template: EntryTemplate) {
    this.key = key;
    this.primitive = primitive;
    this.keyGroup = keyGroup;
    this.space = space;
    this.values = template.values.slice();
    this.sizes = template.sizes.slice();
    this.expiresAtMs = template.expires ? template.expiresAtMs.slice() : (template.expiresAtMs as number[]);
    const keyBytes = typeof key === 'string' ? 2 * key.length : typeof key === 'number' ? 8 : 96;
    this.bytes = overheadBytes + perStateBytes * template.values.length + keyBytes;
  }

  get namespace(): KeyValue | undefined {
    return this.space.namespace;
  }

  get owner(): EntryOwner {
    return this.space.owner;
  }

  evict(): boolean {
    return this.space.owner.evict(this);
  }
}

/** A guess at the memory of a decoded value whose encoded size is not known yet. */
export function guessBytes(value: unknown): number {
  if (typeof value === 'string') return 24 + 2 * value.length;
  if (typeof value !== 'object' || value === null) return 16;
  if (Array.isArray(value)) return 32 + 32 * value.length;
  return value instanceof Uint8Array ? 400 + value.length : 128;
}
