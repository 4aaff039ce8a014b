import type { ElementKind } from './elements.ts';

/** What a channel tells its task. */
export interface Wakeable {
  /** There may be something to do. Cheap when it is known already. */
  wake(): void;
}

/** One channel as its reader sees it: the elements, and what the gate knows about it. */
export abstract class InputChannel {
  /** Which input of the task's head. */
  readonly input: number;
  readonly edge: number;
  readonly fromSlot: number;

  watermarkMs = Number.NEGATIVE_INFINITY;
  idle = false;
  /** The `end` was read; only barriers can follow. */
  ended = false;
  /** Its barrier was read and others' are awaited. */
  blocked = false;

  /** The element that `advance` read last. */
  value: unknown = undefined;
  timestampMs = 0;

  constructor(edge: number, input: number, fromSlot: number) {
    this.edge = edge;
    this.input = input;
    this.fromSlot = fromSlot;
  }

  abstract get available(): boolean;
  /** Reads the next element into `value` and `timestampMs`; `none` when there is none. */
  abstract advance(): ElementKind;
}
