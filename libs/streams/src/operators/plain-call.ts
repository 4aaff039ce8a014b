import type { PlainContext } from '../api/broadcast.ts';
import type { SideTag } from '../api/side-tag.ts';
import type { Output } from '../runtime/operator.ts';

/** The context of handlers without key that return when they are done: one object for all of a subtask's records. */
export class PlainCall implements PlainContext<unknown> {
  timestampMs = 0;
  readonly #output: Output;

  constructor(output: Output) {
    this.#output = output;
  }

  emit(value: unknown, timestampMs = this.timestampMs): void {
    this.#output.emit(value, timestampMs);
  }

  side<X>(tag: SideTag<X>, value: X): void {
    this.#output.emit(value, this.timestampMs, tag.name);
  }
}
