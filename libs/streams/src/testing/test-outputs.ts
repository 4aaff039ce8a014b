import { BaseOperator } from '../operators/base-operator.ts';
import type { Operator, OperatorPart } from '../runtime/operator.ts';

/** A record as it arrived at a sink or a side output. */
export interface Emitted<T> {
  readonly record: T;
  readonly timestampMs: number;
  readonly subtask: number;
}

/** What one sink, or one side output, has got. A restore takes back what came after the checkpoint, as a transactional sink would. */
export class TestOutput {
  #emitted: Emitted<unknown>[] = [];
  /** How much of it is from before this attempt. */
  #restored = 0;
  /** By checkpoint: how much each subtask had got when it took its part. */
  readonly #marks = new Map<number, Map<number, number>>();

  get emitted(): readonly Emitted<unknown>[] {
    return this.#emitted;
  }

  operator(): Operator {
    return new OutputOperator(this);
  }

  add(one: Emitted<unknown>): void {
    this.#emitted.push(one);
  }

  mark(checkpoint: number, subtask: number): void {
    const marks = this.#marks.get(checkpoint) ?? new Map<number, number>();
    this.#marks.set(checkpoint, marks.set(subtask, this.#emitted.length));
  }

  /** What had arrived before the barrier of this checkpoint. */
  before(checkpoint: number): readonly Emitted<unknown>[] {
    const marks = this.#marks.get(checkpoint);
    return this.#emitted.filter(({ subtask }, index) => index < this.#restored || index < (marks?.get(subtask) ?? 0));
  }

  /** Goes on from what a checkpoint had. */
  restore(emitted: readonly Emitted<unknown>[]): void {
    this.#emitted = [...emitted];
    this.#restored = emitted.length;
    this.#marks.clear();
  }
}

class OutputOperator extends BaseOperator {
  readonly #output: TestOutput;

  constructor(output: TestOutput) {
    super();
    this.#output = output;
  }

  override record(record: unknown, timestampMs: number): void {
    this.#output.add({ record, timestampMs, subtask: this.context.subtask });
  }

  override snapshot(checkpoint: number): Promise<OperatorPart> {
    this.#output.mark(checkpoint, this.context.subtask);
    return Promise.resolve({});
  }
}
