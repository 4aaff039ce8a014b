import type { Codec } from '@millrace/state';
import type { ChannelCapture } from './channel-capture.ts';
import { ElementQueue } from './element-queue.ts';
import { type ElementKind, elementKind } from './elements.ts';
import { type Consumer, InputChannel } from './input-channel.ts';
import { nothingOvertaken, type OutputChannel, type Producer } from './output-channel.ts';
import type { Barrier } from './slot.ts';

/** Both ends of a channel inside one slot: a queue of values, nothing is serialised. Bounded by records. */
export class LocalChannel extends InputChannel implements OutputChannel {
  readonly toSlot: number;
  readonly codec: Codec<never>;
  protected readonly captureBytesMax: number;
  readonly #queue: ElementQueue;
  readonly #capacity: number;
  readonly #producer: Producer;
  readonly #consumer: Consumer;
  #full = false;

  constructor(
    place: { edge: number; input: number; slot: number },
    codec: Codec<never>,
    bounds: { records: number; captureBytesMax: number },
    ends: { producer: Producer; consumer: Consumer },
  ) {
    super(place.edge, place.input, place.slot);
    this.toSlot = place.slot;
    this.codec = codec;
    this.captureBytesMax = bounds.captureBytesMax;
    this.#capacity = bounds.records;
    this.#queue = new ElementQueue(bounds.records);
    this.#producer = ends.producer;
    this.#consumer = ends.consumer;
  }

  get available(): boolean {
    return this.#queue.size > 0;
  }

  advance(): ElementKind {
    const queue = this.#queue;
    const kind = queue.shift();
    this.value = queue.value;
    this.timestampMs = queue.timestampMs;
    if (this.#full && queue.size * 2 <= this.#capacity) {
      this.#full = false;
      this.#producer.blockers--;
      this.#producer.wake();
    }
    return kind;
  }

  record(value: unknown, timestampMs: number): void {
    this.#queue.push(elementKind.record, value, timestampMs);
    this.#pushed(elementKind.record, value, timestampMs);
  }

  watermark(watermarkMs: number): void {
    this.#queue.pushWatermark(watermarkMs);
    this.#pushed(elementKind.watermark, undefined, watermarkMs);
  }

  status(idle: boolean): void {
    this.#queue.push(elementKind.status, idle, 0);
    this.#pushed(elementKind.status, idle, 0);
  }

  /** Nothing waits at the writer of a local channel: what the barrier overtakes, its reader copies. */
  barrier(barrier: Barrier): Uint8Array {
    this.#queue.push(elementKind.barrier, barrier, 0);
    this.barrierArrived(barrier, this.#consumer);
    this.#consumer.wake();
    return nothingOvertaken;
  }

  replayed(): void {
    this.#queue.push(elementKind.replayed, undefined, 0);
    this.#pushed(elementKind.replayed, undefined, 0);
  }

  end(): void {
    this.#queue.push(elementKind.end, undefined, 0);
    this.#pushed(elementKind.end, undefined, 0);
  }

  flushIdle(): void {
    // Nothing is held back inside a slot.
  }

  protected copyWaiting(capture: ChannelCapture): void {
    this.#queue.each((kind, value, timestampMs) => {
      if (kind === elementKind.barrier && (value as Barrier).checkpoint === capture.checkpoint) return false;
      capture.element(kind, value, timestampMs);
      return true;
    });
  }

  #pushed(kind: ElementKind, value: unknown, timestampMs: number): void {
    if (this.capture !== undefined) {
      this.capture.element(kind, value, timestampMs);
      this.capturedMore(this.capture);
    }
    if (!this.#full && this.#queue.size >= this.#capacity) {
      this.#full = true;
      this.#producer.blockers++;
    }
    this.#consumer.wake();
  }
}
