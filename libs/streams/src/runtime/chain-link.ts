import type { Codec } from '@millrace/state';
import type { Target } from './edge-output.ts';
import { ElementQueue } from './element-queue.ts';
import { elementKind } from './elements.ts';
import { FrameWriter } from './frame-writer.ts';
import type { Operator } from './operator.ts';
import type { Producer } from './output-channel.ts';

/**
 * The step from one operator of a chain to the next: a plain call. Only while the next operator is busy with a promise,
 * or the link is held for a snapshot, do elements wait here, and the task then takes no input.
 */
export class ChainLink implements Target {
  recordsIn = 0;
  /** Elements that ever passed: what the drain of a chain looks at. */
  passed = 0;
  /** Index in the graph's `edges`. */
  readonly edge: number;
  readonly #codec: Codec<never>;
  readonly #operator: Operator;
  readonly #task: Producer;
  /** Marks the operator as the failed one, and returns what to throw. */
  readonly #failed: (error: unknown) => unknown;
  readonly #queue = new ElementQueue(16);
  /** Elements go to the queue: a call is open, the queue is being worked off, or the link is held. */
  #queueing = false;
  #held = false;
  /** A call of the operator has not ended. */
  #calling = false;
  /** Resolves when the queue is empty; while it is there, the task is blocked. */
  #busy: Promise<void> | undefined;
  #onReturn: (() => void) | undefined;
  #onRelease: (() => void) | undefined;

  constructor(
    edge: { readonly id: number; readonly codec: Codec<never> },
    operator: Operator,
    task: Producer,
    failed: (error: unknown) => unknown,
  ) {
    this.edge = edge.id;
    this.#codec = edge.codec;
    this.#operator = operator;
    this.#task = task;
    this.#failed = failed;
  }

  record(value: unknown, timestampMs: number): void {
    this.passed++;
    this.recordsIn++;
    if (this.#queueing) {
      this.#queue.push(elementKind.record, value, timestampMs);
      return;
    }
    let pending: void | Promise<void>;
    try {
      pending = this.#operator.record(value, timestampMs, 0);
    } catch (error) {
      throw this.#failed(error);
    }
    if (pending !== undefined) this.#wait(pending);
  }

  watermark(watermarkMs: number): void {
    this.#pass(elementKind.watermark, undefined, watermarkMs);
  }

  status(idle: boolean): void {
    this.#pass(elementKind.status, idle, 0);
  }

  /** Resolves when nothing waits; nothing is returned when that is so already. */
  settled(): void | Promise<void> {
    return this.#busy;
  }

  /** Calls the operator no more: what comes waits. Resolves when the call that is open has ended. */
  hold(): void | Promise<void> {
    this.#held = true;
    this.#queueing = true;
    if (!this.#calling) return undefined;
    return new Promise((resolve) => {
      this.#onReturn = resolve;
    });
  }

  /**
   * The records that wait, oldest first. Watermarks and status are left out: whoever sent them sends later ones after a
   * restore, and until then the operator only knows less of the time.
   */
  packWaiting(): Uint8Array {
    const writer = new FrameWriter(this.#codec, 64);
    this.#queue.each((kind, value, timestampMs) => {
      if (kind === elementKind.record) writer.record(value, timestampMs);
      return true;
    });
    return writer.take();
  }

  /** Ends the hold; what waits goes on in order. */
  release(): void {
    this.#held = false;
    if (this.#busy !== undefined) return this.#onRelease?.();
    this.#queueing = this.#queue.size > 0;
    if (this.#queueing) this.#wait(Promise.resolve());
  }

  /** Before the first call: a record that waited here in the restored checkpoint. `release` lets them go. */
  restore(value: unknown, timestampMs: number): void {
    this.#held = true;
    this.#queueing = true;
    this.#queue.push(elementKind.record, value, timestampMs);
  }

  #pass(kind: typeof elementKind.watermark | typeof elementKind.status, value: unknown, timestampMs: number): void {
    this.passed++;
    if (this.#queueing) {
      this.#queue.push(kind, value, timestampMs);
      return;
    }
    let pending: void | Promise<void>;
    try {
      pending = this.#call(kind, value, timestampMs);
    } catch (error) {
      throw this.#failed(error);
    }
    if (pending !== undefined) this.#wait(pending);
  }

  #call(kind: number, value: unknown, timestampMs: number): void | Promise<void> {
    if (kind === elementKind.record) return this.#operator.record(value, timestampMs, 0);
    if (kind === elementKind.watermark) return this.#operator.watermark(timestampMs);
    return this.#operator.status(value as boolean);
  }

  #wait(pending: Promise<void>): void {
    this.#task.blockers++;
    this.#queueing = true;
    // After a failure the operator stays busy: nothing may reach it any more.
    this.#busy = this.#work(pending).catch((error: unknown) => void this.#failed(error));
  }

  async #work(first: Promise<void>): Promise<void> {
    await this.#called(first);
    for (;;) {
      while (this.#held) await this.#released();
      const kind = this.#queue.shift();
      if (kind === elementKind.none) break;
      const pending = this.#call(kind, this.#queue.value, this.#queue.timestampMs);
      if (pending !== undefined) await this.#called(pending);
    }
    this.#busy = undefined;
    this.#queueing = false;
    this.#task.blockers--;
    this.#task.wake();
  }

  async #called(pending: Promise<void>): Promise<void> {
    this.#calling = true;
    await pending;
    this.#calling = false;
    this.#onReturn?.();
    this.#onReturn = undefined;
  }

  #released(): Promise<void> {
    return new Promise((resolve) => {
      this.#onRelease = resolve;
    });
  }
}
