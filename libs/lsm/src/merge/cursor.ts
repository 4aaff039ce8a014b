import type { MaybePromise } from '@millrace/kernel';

/**
 * A position in an ordered sequence of entries with unique keys. The fields describe the entry at the position and are
 * valid until the next call of `next`. Both calls return a promise only when bytes have to be fetched.
 */
export interface Cursor {
  /** False beyond the last entry. */
  readonly valid: boolean;
  readonly bytes: Uint8Array;
  readonly keyStart: number;
  readonly keyEnd: number;
  readonly valueStart: number;
  readonly valueEnd: number;
  readonly isTombstone: boolean;
  /** 0 means never. */
  readonly expiresAtMs: number;
  /** Goes to the first entry; to be called once. */
  open(): MaybePromise<void>;
  next(): MaybePromise<void>;
}
