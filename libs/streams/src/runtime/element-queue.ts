import { type ElementKind, elementKind } from './elements.ts';

/**
 * A FIFO ring of elements in parallel arrays, so that passing a record allocates nothing. Grows by doubling: its
 * users bound it by looking at `size`.
 */
export class ElementQueue {
  size = 0;
  #head = 0;
  #kinds: Uint8Array;
  #timestamps: Float64Array;
  #values: unknown[];
  /** The element that `shift` took last. */
  value: unknown = undefined;
  timestampMs = 0;

  constructor(capacity = 64) {
    let power = 16;
    while (power < capacity) power *= 2;
    this.#kinds = new Uint8Array(power);
    this.#timestamps = new Float64Array(power);
    this.#values = Array.from({ length: power }, () => undefined);
  }

  push(kind: ElementKind, value: unknown, timestampMs: number): void {
    if (this.size === this.#kinds.length) this.#grow();
    const at = (this.#head + this.size) & (this.#kinds.length - 1);
    this.#kinds[at] = kind;
    this.#timestamps[at] = timestampMs;
    this.#values[at] = value;
    this.size++;
  }

  /** As `push`, but a watermark right behind another one takes its place: only the newest matters. */
  pushWatermark(watermarkMs: number): void {
    if (this.size > 0) {
      const last = (this.#head + this.size - 1) & (this.#kinds.length - 1);
      if (this.#kinds[last] === elementKind.watermark) {
        this.#timestamps[last] = watermarkMs;
        return;
      }
    }
    this.push(elementKind.watermark, undefined, watermarkMs);
  }

  /** Takes the oldest element into `value` and `timestampMs`; `none` when there is none. */
  shift(): ElementKind {
    if (this.size === 0) return elementKind.none;
    const at = this.#head;
    this.value = this.#values[at];
    this.timestampMs = this.#timestamps[at] as number;
    this.#values[at] = undefined;
    this.#head = (at + 1) & (this.#kinds.length - 1);
    this.size--;
    return this.#kinds[at] as ElementKind;
  }

  /** Looks at the elements, oldest first, until `visit` returns false. */
  each(visit: (kind: ElementKind, value: unknown, timestampMs: number) => boolean): void {
    for (let i = 0; i < this.size; i++) {
      const at = (this.#head + i) & (this.#kinds.length - 1);
      if (!visit(this.#kinds[at] as ElementKind, this.#values[at], this.#timestamps[at] as number)) return;
    }
  }

  #grow(): void {
    const length = this.#kinds.length;
    const kinds = new Uint8Array(length * 2);
    const timestamps = new Float64Array(length * 2);
    const values: unknown[] = Array.from({ length: length * 2 }, () => undefined);
    for (let i = 0; i < this.size; i++) {
      const at = (this.#head + i) & (length - 1);
      kinds[i] = this.#kinds[at] as number;
      timestamps[i] = this.#timestamps[at] as number;
      values[i] = this.#values[at];
    }
    this.#kinds = kinds;
    this.#timestamps = timestamps;
    this.#values = values;
    this.#head = 0;
  }
}
