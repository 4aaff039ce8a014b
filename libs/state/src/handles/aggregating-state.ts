import { isPending, type MaybePromise, MillraceError } from '@millrace/kernel';
import type { Entry } from '../keyed/entry.ts';
import { checkOpen } from '../keyed/late-access.ts';
import type { AccessScope } from '../keyed/ports.ts';
import type { ValueCell } from '../keyed/value-cell.ts';
import type { Aggregate, AggregatingDescriptor } from './descriptors.ts';
import type { AggregatingHandle } from './handles.ts';

/** An aggregating state as one record sees it. */
export class AggregatingState<In, Acc, Out> implements AggregatingHandle<In, Out> {
  readonly #aggregate: Aggregate<In, Acc, Out>;
  readonly #cell: ValueCell<Acc>;
  readonly #entry: Entry;
  readonly #scope: AccessScope;

  constructor(descriptor: AggregatingDescriptor<In, Acc, Out>, cell: ValueCell<Acc>, entry: Entry, scope: AccessScope) {
    this.#aggregate = descriptor.aggregate;
    this.#cell = cell;
    this.#entry = entry;
    this.#scope = scope;
  }

  get(): MaybePromise<Out | undefined> {
    const accumulator = this.#read();
    if (isPending(accumulator)) return accumulator.then((value) => this.#result(value));
    return this.#result(accumulator);
  }

  add(value: In): MaybePromise<void> {
    const accumulator = this.#read();
    if (isPending(accumulator)) return accumulator.then(() => this.#fold(value));
    this.#fold(value);
  }

  clear(): void {
    checkOpen(this.#scope);
    this.#cell.write(this.#entry, undefined);
  }

  mergeFrom(other: AggregatingHandle<In, Out>): MaybePromise<void> {
    if (!(other instanceof AggregatingState) || this.#aggregate.merge === undefined) {
      throw new MillraceError(
        'bad-argument',
        'mergeFrom needs an aggregate with `merge`, and a handle of the same state',
      );
    }
    const source = other as AggregatingState<In, Acc, Out>;
    const ours = this.#read();
    const theirs = source.#read();
    if (isPending(ours) || isPending(theirs)) return this.#mergeLater(source, ours, theirs);
    this.#merge(source);
  }

  async #mergeLater(
    source: AggregatingState<In, Acc, Out>,
    ...reads: readonly MaybePromise<Acc | undefined>[]
  ): Promise<void> {
    for (const read of reads) await read;
    this.#merge(source);
  }

  #read(): MaybePromise<Acc | undefined> {
    checkOpen(this.#scope);
    return this.#cell.read(this.#entry, this.#scope);
  }

  #result(accumulator: Acc | undefined): Out | undefined {
    return accumulator === undefined ? undefined : this.#aggregate.result(accumulator);
  }

  #fold(value: In): void {
    checkOpen(this.#scope);
    const accumulator = this.#cell.at(this.#entry) ?? this.#aggregate.create();
    this.#cell.write(this.#entry, this.#aggregate.add(accumulator, value));
  }

  #merge(source: AggregatingState<In, Acc, Out>): void {
    const theirs = source.#cell.at(source.#entry);
    if (theirs === undefined) return;
    source.clear();
    const ours = this.#cell.at(this.#entry);
    this.#cell.write(this.#entry, ours === undefined ? theirs : (this.#aggregate.merge?.(ours, theirs) as Acc));
  }
}
