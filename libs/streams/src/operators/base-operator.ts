import { assert } from '@millrace/kernel';
import type { Operator, OperatorContext, OperatorPart, Output } from '../runtime/operator.ts';

/** What operators without time, state or asynchrony of their own share: everything is passed on. */
export abstract class BaseOperator implements Operator {
  #context: OperatorContext | undefined;
  protected output: Output = closedOutput;

  protected get context(): OperatorContext {
    assert(this.#context !== undefined, 'operator used before it was opened');
    return this.#context;
  }

  open(context: OperatorContext): void | Promise<void> {
    this.#context = context;
    this.output = context.output;
  }

  abstract record(value: unknown, timestampMs: number, input: number): void | Promise<void>;

  watermark(watermarkMs: number): void | Promise<void> {
    this.output.watermark(watermarkMs);
  }

  status(idle: boolean): void | Promise<void> {
    this.output.status(idle);
  }

  drain(): void | Promise<void> {}

  snapshot(_checkpoint: number): Promise<OperatorPart> {
    return nothing;
  }

  complete(_checkpoint: number): void | Promise<void> {}

  abort(_checkpoint: number): void {}

  inFlight(): number {
    return 0;
  }

  buffered(): number {
    return 0;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

const nothing: Promise<OperatorPart> = Promise.resolve({});

const closedOutput: Output = {
  emit: () => assert(false, 'emit before open'),
  watermark: () => assert(false, 'watermark before open'),
  status: () => assert(false, 'status before open'),
};
