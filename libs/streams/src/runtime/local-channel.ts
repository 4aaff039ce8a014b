import { ElementQueue } from './element-queue.ts';
import { type ElementKind, elementKind } from './elements.ts';
import { InputChannel, type Wakeable } from './input-channel.ts';
import type { OutputChannel, Producer } from './output-channel.ts';
import type { Barrier } from './slot.ts';

/** Both ends of a channel inside one slot: a queue of values, nothing is serialised. Bounded by records. */
export class LocalChannel extends InputChannel implements OutputChannel {
  readonly #queue: ElementQueue;
  readonly #capacity: number;
  readonly #producer: Producer;
  readonly #consumer: Wakeable;
  #full = false;

  constructor(
    place: { edge: number; input: number; slot: number },
    capacity: number,
    ends: { producer: Producer; consumer: Wakeable },
  ) {
    super(place.edge, place.input, place.slot);
    this.#capacity = capacity;
    this.#queue = new ElementQueue(capacity);
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
    this.#pushed();
  }

  watermark(watermarkMs: number): void {
    this.#queue.pushWatermark(watermarkMs);
    this.#pushed();
  }

  status(idle: boolean): void {
    this.#queue.push(elementKind.status, idle, 0);
    this.#pushed();
  }

  barrier(barrier: Barrier): void {
    this.#queue.push(elementKind.barrier, barrier, 0);
    this.#pushed();
  }

  end(): void {
    this.#queue.push(elementKind.end, undefined, 0);
    this.#pushed();
  }

  flushIdle(): void {
    // Nothing is held back inside a slot.
  }

  #pushed(): void {
    if (!this.#full && this.#queue.size >= this.#capacity) {
      this.#full = true;
      this.#producer.blockers++;
    }
    this.#consumer.wake();
  }
}
