import type { SideContext } from '../api/broadcast.ts';
import { BaseOperator } from './base-operator.ts';
import { PlainCall } from './plain-call.ts';

/** One record in, one out. */
export class MapOperator extends BaseOperator {
  readonly #fn: (value: unknown, timestampMs: number) => unknown;

  constructor(fn: (value: never, timestampMs: number) => unknown) {
    super();
    this.#fn = fn as (value: unknown, timestampMs: number) => unknown;
  }

  override record(value: unknown, timestampMs: number): void {
    this.output.emit(this.#fn(value, timestampMs), timestampMs);
  }
}

/** Keeps the records that the predicate accepts. */
export class FilterOperator extends BaseOperator {
  readonly #keep: (value: unknown, timestampMs: number) => boolean;

  constructor(keep: (value: never, timestampMs: number) => boolean) {
    super();
    this.#keep = keep as (value: unknown, timestampMs: number) => boolean;
  }

  override record(value: unknown, timestampMs: number): void {
    if (this.#keep(value, timestampMs)) this.output.emit(value, timestampMs);
  }
}

/** One record in, any number out, each with the timestamp of the one that came in. */
export class FlatMapOperator extends BaseOperator {
  readonly #fn: (value: unknown, timestampMs: number, ctx: PlainCall) => Iterable<unknown>;
  #call: PlainCall | undefined;

  constructor(fn: (value: never, timestampMs: number, ctx: SideContext) => Iterable<unknown>) {
    super();
    this.#fn = fn as unknown as (value: unknown, timestampMs: number, ctx: PlainCall) => Iterable<unknown>;
  }

  override record(value: unknown, timestampMs: number): void {
    this.#call ??= new PlainCall(this.output);
    this.#call.timestampMs = timestampMs;
    for (const result of this.#fn(value, timestampMs, this.#call)) this.output.emit(result, timestampMs);
  }
}
