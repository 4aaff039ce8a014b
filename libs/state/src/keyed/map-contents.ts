import { assert } from '@millrace/kernel';
import type { PrimitiveKey } from '../keys/primitive-key.ts';

/** What is known of one entry of a map. */
export interface MapItem {
  readonly key: unknown;
  /** The encoded map key. */
  readonly keyBytes: Uint8Array;
  /** `undefined`: absent. */
  value: unknown;
  expiresAtMs: number;
  dirty: boolean;
}

/** What is at hand of one map of one key. */
export class MapContents {
  readonly items = new Map<PrimitiveKey, MapItem>();
  /** Changed since the last save, in the order of the changes. */
  readonly changed: MapItem[] = [];
  /** True when the table has nothing for this map beyond `items`. */
  complete = false;
  /** Grows when items are forgotten: a read that was under way then must not bring back what it found. */
  forgotten = 0;

  /** Forgets everything: the table knows it all. */
  forget(): void {
    assert(this.changed.length === 0, 'a map with unsaved entries must not be forgotten');
    this.forgotten++;
    this.complete = false;
    this.items.clear();
  }
}
