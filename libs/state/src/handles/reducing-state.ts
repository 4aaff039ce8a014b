import { isPending, type MaybePromise } from '@millrace/kernel';
import type { Entry } from '../keyed/entry.ts';
import { checkOpen } from '../keyed/late-access.ts';
import type { AccessScope } from '../keyed/ports.ts';
import type { ValueCell } from '../keyed/value-cell.ts';
import type { ReducingDescriptor } from './descriptors.ts';
import type { ReducingHandle } from './handles.ts';

/** A reducing state as one record sees it. */
export class ReducingState<T> implements ReducingHandle<T> {
  readonly #descriptor: ReducingDescriptor<T>;
  readonly #cell: ValueCell<T>;
  readonly #entry: Entry;
  readonly #scope: AccessScope;

  constructor(descriptor: ReducingDescriptor<T>, cell: ValueCell<T>, entry: Entry, scope: AccessScope) {
    this.#descriptor = descriptor;
    this.#cell = cell;
    this.#entry = entry;
    this.#scope = scope;
  }

  get(): MaybePromise<T | undefined> {
    checkOpen(this.#scope);
    return this.#cell.read(this.#entry, this.#scope);
  }

  add(value: T): MaybePromise<void> {
    const reduced = this.get();
    if (isPending(reduced)) return reduced.then(() => this.#fold(value));
    this.#fold(value);
  }

  clear(): void {
    checkOpen(this.#scope);
    this.#cell.write(this.#entry, undefined);
  }

  mergeFrom(other: ReducingHandle<T>): MaybePromise<void> {
    const theirs = other.get();
    if (isPending(theirs)) return theirs.then((value) => this.#take(other, value));
    return this.#take(other, theirs);
  }

  #take(other: ReducingHandle<T>, value: T | undefined): MaybePromise<void> {
    if (value === undefined) return undefined;
    other.clear();
    return this.add(value);
  }

  #fold(value: T): void {
    checkOpen(this.#scope);
    const reduced = this.#cell.at(this.#entry);
    this.#cell.write(this.#entry, reduced === undefined ? value : this.#descriptor.reduce(reduced, value));
  }
}
