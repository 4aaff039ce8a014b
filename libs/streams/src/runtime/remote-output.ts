import type { Codec } from '@millrace/state';
import { FrameWriter } from './frame-writer.ts';
import type { OutputChannel, Producer } from './output-channel.ts';
import type { Barrier } from './slot.ts';
import type { SlotTransport } from './transport.ts';

/** Sees to it that a partial frame leaves in time. */
export interface FrameTimer {
  /** A partial frame has begun: `flush` is to be called within the frame delay. */
  begun(output: RemoteOutput): void;
}

/** The writing end of a channel to another slot: packs frames and sends them while there is credit. */
export class RemoteOutput implements OutputChannel {
  readonly #frame: FrameWriter;
  readonly #toSlot: number;
  readonly #edge: number;
  readonly #transport: SlotTransport;
  readonly #producer: Producer;
  readonly #timer: FrameTimer;
  readonly #frameBytes: number;
  readonly #frameDelayMs: number;
  #creditBytes = 0;
  /** Frames without credit. */
  #waiting: Array<Uint8Array<ArrayBuffer>> = [];
  #lastPartialMs = Number.NEGATIVE_INFINITY;

  constructor(
    place: { edge: number; toSlot: number },
    codec: Codec<never>,
    wiring: {
      transport: SlotTransport;
      producer: Producer;
      timer: FrameTimer;
      frameBytes: number;
      frameDelayMs: number;
    },
  ) {
    this.#frame = new FrameWriter(codec, wiring.frameBytes);
    this.#toSlot = place.toSlot;
    this.#edge = place.edge;
    this.#transport = wiring.transport;
    this.#producer = wiring.producer;
    this.#timer = wiring.timer;
    this.#frameBytes = wiring.frameBytes;
    this.#frameDelayMs = wiring.frameDelayMs;
  }

  onCredit(bytes: number): void {
    this.#creditBytes += bytes;
    if (this.#waiting.length === 0) return;
    while (this.#waiting.length > 0 && this.#creditBytes > 0)
      this.#send(this.#waiting.shift() as Uint8Array<ArrayBuffer>);
    if (this.#waiting.length === 0) {
      this.#producer.blockers--;
      this.#producer.wake();
    }
  }

  record(value: unknown, timestampMs: number): void {
    if (this.#frame.bytes === 0) this.#timer.begun(this);
    this.#frame.record(value, timestampMs);
    if (this.#frame.bytes >= this.#frameBytes) this.flush();
  }

  watermark(watermarkMs: number): void {
    if (this.#frame.bytes === 0) this.#timer.begun(this);
    this.#frame.watermark(watermarkMs);
    if (watermarkMs === Number.POSITIVE_INFINITY) this.flush();
  }

  status(idle: boolean): void {
    if (this.#frame.bytes === 0) this.#timer.begun(this);
    this.#frame.status(idle);
  }

  barrier(barrier: Barrier): void {
    this.#frame.barrier(barrier);
    this.flush();
  }

  end(): void {
    this.#frame.end();
    this.flush();
  }

  flushIdle(nowMs: number): void {
    if (this.#frame.bytes === 0 || nowMs - this.#lastPartialMs < this.#frameDelayMs) return;
    this.#lastPartialMs = nowMs;
    this.flush();
  }

  flush(): void {
    if (this.#frame.bytes === 0) return;
    const frame = this.#frame.take();
    if (this.#creditBytes > 0 && this.#waiting.length === 0) this.#send(frame);
    else if (this.#waiting.push(frame) === 1) this.#producer.blockers++;
  }

  #send(frame: Uint8Array<ArrayBuffer>): void {
    this.#creditBytes -= frame.length;
    this.#transport.send(this.#toSlot, this.#edge, frame);
  }
}
