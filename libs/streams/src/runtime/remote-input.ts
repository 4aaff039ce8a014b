import type { Codec } from '@millrace/state';
import type { ChannelCapture } from './channel-capture.ts';
import { type ElementKind, elementKind } from './elements.ts';
import { barrierOf, FrameReader } from './frame-reader.ts';
import { type Consumer, InputChannel } from './input-channel.ts';
import type { SlotTransport } from './transport.ts';

/**
 * The reading end of a channel from another slot. Frames wait as bytes and are decoded record by record as the task
 * takes them; what is consumed is granted back.
 */
export class RemoteInput extends InputChannel {
  readonly codec: Codec<never>;
  /** Twice what can wait here: enough while the barrier is on its way, and no more when it is not. */
  protected readonly captureBytesMax: number;
  readonly #transport: SlotTransport;
  readonly #consumer: Consumer;
  readonly #windowBytes: number;
  readonly #reader: FrameReader;
  #frames: Uint8Array[] = [];
  #current: Uint8Array | undefined;
  #consumedBytes = 0;

  constructor(
    place: { edge: number; input: number; fromSlot: number },
    codec: Codec<never>,
    wiring: { transport: SlotTransport; consumer: Consumer; windowBytes: number },
  ) {
    super(place.edge, place.input, place.fromSlot);
    this.codec = codec;
    this.#reader = new FrameReader(codec);
    this.#transport = wiring.transport;
    this.#consumer = wiring.consumer;
    this.#windowBytes = wiring.windowBytes;
    this.captureBytesMax = wiring.windowBytes * 2;
  }

  /** Lets the sender begin. */
  open(): void {
    this.#transport.grant(this.fromSlot, this.edge, this.#windowBytes);
  }

  onFrame(frame: Uint8Array): void {
    if (frame.length === 0) return;
    if (this.#current === undefined) this.#begin(frame);
    else this.#frames.push(frame);
    const barrier = barrierOf(frame);
    if (barrier !== undefined) this.barrierArrived(barrier, this.#consumer);
    else if (this.capture !== undefined) {
      this.capture.packed(frame);
      this.capturedMore(this.capture);
    }
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

  protected copyWaiting(capture: ChannelCapture): void {
    if (this.#current === undefined) return;
    let position = this.#reader.position;
    for (const frame of [this.#current, ...this.#frames]) {
      const barrier = barrierOf(frame);
      if (barrier?.checkpoint === capture.checkpoint) return;
      if (barrier === undefined) capture.packed(frame.subarray(position));
      position = 0;
    }
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
