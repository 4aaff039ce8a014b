import type { Target } from './edge-output.ts';
import { ElementQueue } from './element-queue.ts';
import { elementKind } from './elements.ts';
import type { Operator } from './operator.ts';
import type { Producer } from './output-channel.ts';

/**
 * The step from one operator of a chain to the next: a plain call. Only while the next operator is busy with a promise
 * do elements wait here, and the task then takes no input.
 */
export class ChainLink implements Target {
  recordsIn = 0;
  /** Elements that ever passed: what the drain of a chain looks at. */
  passed = 0;
  readonly #operator: Operator;
  readonly #task: Producer;
  /** Marks the operator as the failed one, and returns what to throw. */
  readonly #failed: (error: unknown) => unknown;
  readonly #queue = new ElementQueue(16);
  #busy: Promise<void> | undefined;

  constructor(operator: Operator, task: Producer, failed: (error: unknown) => unknown) {
    this.#operator = operator;
    this.#task = task;
    this.#failed = failed;
  }

  record(value: unknown, timestampMs: number): void {
    this.passed++;
    this.recordsIn++;
    if (this.#busy !== undefined) {
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

  #pass(kind: typeof elementKind.watermark | typeof elementKind.status, value: unknown, timestampMs: number): void {
    this.passed++;
    if (this.#busy !== undefined) {
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
    // After a failure the operator stays busy: nothing may reach it any more.
    this.#busy = this.#work(pending).catch((error: unknown) => void this.#failed(error));
  }

  async #work(first: Promise<void>): Promise<void> {
    await first;
    for (let kind = this.#queue.shift(); kind !== elementKind.none; kind = this.#queue.shift()) {
      const pending = this.#call(kind, this.#queue.value, this.#queue.timestampMs);
      if (pending !== undefined) await pending;
    }
    this.#busy = undefined;
    this.#task.blockers--;
    this.#task.wake();
  }
}
