/** What a lookup knows without any input or output. */
export type Answer = 'found' | 'absent' | 'unknown';

/** Where a lookup leaves the value it found; valid until the next call on the table. */
export interface ValueRef {
  bytes: Uint8Array;
  start: number;
  end: number;
}

/** Keys in one arena: key `i` is `bytes[offsets[i], offsets[i + 1])`. */
export interface KeyList {
  readonly count: number;
  readonly bytes: Uint8Array;
  readonly offsets: Uint32Array;
}

/** Values in one arena, in the order of the keys; `present[i]` is 0 where the key is absent. */
export interface ValueList extends KeyList {
  readonly present: Uint8Array;
}

/** The entries of one page of a scan, in key order. */
export interface EntryPage {
  readonly keys: KeyList;
  readonly values: ValueList;
}
