import type { Sink } from '../api/sink.ts';
import { BaseOperator } from '../operators/base-operator.ts';

class CallbackOperator<T> extends BaseOperator {
  readonly #take: (record: T, timestampMs: number) => void;

  constructor(take: (record: T, timestampMs: number) => void) {
    super();
    this.#take = take;
  }

  override record(value: unknown, timestampMs: number): void {
    this.#take(value as T, timestampMs);
  }
}

/** Calls a function with each record, in the slot that runs it. At least once: after a failure records come again. */
export function callback<T>(take: (record: T, timestampMs: number) => void, kind = 'callback'): Sink<T> {
  return { kind, stateful: false, create: () => new CallbackOperator(take) };
}

/** Pushes each record to an array: for tests that run in one process. */
export function collect<T>(into: T[]): Sink<T> {
  return callback((record: T) => void into.push(record), 'collect');
}

/** Writes each record as a line of JSON to the standard output of the runner. */
export function consoleSink<T>(prefix = ''): Sink<T> {
  return callback((record: T) => void process.stdout.write(`${prefix}${JSON.stringify(record)}\n`), 'console');
}

/** Counts, and forgets the records: the end of a benchmark. */
export function discard<T>(): Sink<T> {
  return callback<T>(() => undefined, 'discard');
}
