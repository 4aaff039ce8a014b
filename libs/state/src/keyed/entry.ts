import type { KeyValue } from '../keys/key-value.ts';
import type { PrimitiveKey } from '../keys/primitive-key.ts';
import type { StateEntry } from './ports.ts';
import type { Resident } from './working-set.ts';

/** Stands in `values` for a state that has not been read yet; `undefined` there means: known to be absent. */
export const unloaded: unique symbol = Symbol('unloaded');

export interface EntryOwner {
  evict(entry: Entry): void;
}

/** Estimated bytes of an entry before its values. */
const overheadBytes = 240;

/** The decoded state of one key in one namespace of one operator. */
export class Entry implements StateEntry, Resident {
  readonly key: unknown;
  readonly namespace: KeyValue | undefined;
  readonly keyGroup: number;
  /** length · key · length · namespace: what follows the state id in each of its stored keys. */
  readonly suffix: Uint8Array;
  /** By state index: the value, `undefined` (absent), {@link unloaded}, or the cell of a map. */
  readonly values: unknown[];
  /** By state index: when a value of a state with TTL ends, epoch milliseconds. */
  readonly expiresAtMs: number[];
  /** By state index: estimated bytes. */
  readonly sizes: number[];
  /** Bit for each state index: changed since it was last written to the table. */
  dirty = 0;
  pins = 0;
  referenced = true;
  ringIndex = -1;
  bytes: number;
  /** Times of the timers last registered, so that registering them again costs nothing. */
  eventTimerMs = Number.NaN;
  processingTimerMs = Number.NaN;
  /** Where the owner finds it. */
  readonly primitive: PrimitiveKey;
  readonly space: Map<PrimitiveKey, Entry>;
  readonly #owner: EntryOwner;

  constructor(owner: EntryOwner, place: EntryPlace, states: number) {
    this.#owner = owner;
    this.key = place.key;
    this.namespace = place.namespace;
    this.keyGroup = place.keyGroup;
    this.suffix = place.suffix;
    this.primitive = place.primitive;
    this.space = place.space;
    this.values = Array.from({ length: states }, (): unknown => unloaded);
    this.expiresAtMs = Array.from({ length: states }, () => 0);
    this.sizes = Array.from({ length: states }, () => 0);
    this.bytes = overheadBytes + place.suffix.length + 40 * states;
  }

  evict(): void {
    this.#owner.evict(this);
  }
}

export interface EntryPlace {
  readonly key: unknown;
  readonly namespace: KeyValue | undefined;
  readonly keyGroup: number;
  readonly suffix: Uint8Array;
  readonly primitive: PrimitiveKey;
  readonly space: Map<PrimitiveKey, Entry>;
}

/** A guess at the memory of a decoded value whose encoded size is not known yet. */
export function guessBytes(value: unknown): number {
  if (typeof value === 'string') return 24 + 2 * value.length;
  if (typeof value !== 'object' || value === null) return 16;
  if (Array.isArray(value)) return 32 + 32 * value.length;
  return value instanceof Uint8Array ? 64 + value.length : 128;
}
