import { ByteWriter } from '@millrace/kernel';
import type { ValueList, ValueRef } from '../answers.ts';

/** Values found in any order, packed in the order of their keys. */
export class ValueCollector {
  readonly #present: Uint8Array;
  readonly #starts: Uint32Array;
  readonly #ends: Uint32Array;
  readonly #arena: ByteWriter;
  #lastKey = -1;
  #isInOrder = true;

  constructor(keys: number) {
    this.#present = new Uint8Array(keys);
    this.#starts = new Uint32Array(keys);
    this.#ends = new Uint32Array(keys);
    this.#arena = new ByteWriter(Math.min(4096, 64 * keys));
  }

  /** Copies the value of key `index`. */
  add(index: number, value: ValueRef): void {
    if (index < this.#lastKey) this.#isInOrder = false;
    this.#lastKey = index;
    const arena = this.#arena;
    this.#present[index] = 1;
    this.#starts[index] = arena.position;
    arena.raw(value.bytes.subarray(value.start, value.end));
    this.#ends[index] = arena.position;
  }

  finish(): ValueList {
    const count = this.#present.length;
    const source = this.#arena.written();
    const bytes = this.#isInOrder ? source : new Uint8Array(source.length);
    const offsets = new Uint32Array(count + 1);
    let end = 0;
    for (let i = 0; i < count; i++) {
      offsets[i] = end;
      if (this.#present[i] === 0) continue;
      if (!this.#isInOrder) bytes.set(source.subarray(this.#starts[i], this.#ends[i]), end);
      end += (this.#ends[i] as number) - (this.#starts[i] as number);
    }
    offsets[count] = end;
    return { count, bytes, offsets, present: this.#present };
  }
}
