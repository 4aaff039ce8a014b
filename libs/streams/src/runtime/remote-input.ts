import type { Codec } from '@millrace/state';
import { type ElementKind, elementKind } from './elements.ts';
import { FrameReader } from './frame-reader.ts';
import { InputChannel, type Wakeable } from './input-channel.ts';
import type { SlotTransport } from './transport.ts';

/**
 * The reading end of a channel from another slot. Frames wait as bytes and are decoded record by record as the task
 * takes them; what is consumed is granted back.
 */
export class RemoteInput extends InputChannel {
  readonly #transport: SlotTransport;
  readonly #consumer: Wakeable;
  readonly #windowBytes: number;
  readonly #reader: FrameReader;
  #frames: Uint8Array[] = [];
  #current: Uint8Array | undefined;
  #consumedBytes = 0;

  constructor(
    place: { edge: number; input: number; fromSlot: number },
    codec: Codec<never>,
    wiring: { transport: SlotTransport; consumer: Wakeable; windowBytes: number },
  ) {
    super(place.edge, place.input, place.fromSlot);
    this.#reader = new FrameReader(codec);
    this.#transport = wiring.transport;
    this.#consumer = wiring.consumer;
    this.#windowBytes = wiring.windowBytes;
  }

  /** Lets the sender begin. */
  open(): void {
    this.#transport.grant(this.fromSlot, this.edge, this.#windowBytes);
  }

  onFrame(frame: Uint8Array): void {
    if (frame.length === 0) return;
    if (this.#current === undefined) this.#begin(frame);
    else this.#frames.push(frame);
    this.#consumer.wake();
  }

  get available(): boolean {
    return this.#current !== undefined;
  }

  advance(): ElementKind {
    if (this.#current === undefined) return elementKind.none;
    const reader = this.#reader;
    const kind = reader.next();
    this.value = reader.value;
    this.timestampMs = reader.timestampMs;
    if (reader.done) this.#finishFrame(this.#current);
    return kind;
  }

  #begin(frame: Uint8Array): void {
    this.#current = frame;
    this.#reader.start(frame);
  }

  #finishFrame(frame: Uint8Array): void {
    this.#consumedBytes += frame.length;
    if (this.#consumedBytes * 4 >= this.#windowBytes) {
      this.#transport.grant(this.fromSlot, this.edge, this.#consumedBytes);
      this.#consumedBytes = 0;
    }
    this.#current = undefined;
    const next = this.#frames.shift();
    if (next !== undefined) this.#begin(next);
  }
}
