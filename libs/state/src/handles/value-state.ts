import { isPending, type MaybePromise } from '@millrace/kernel';
import type { Entry } from '../keyed/entry.ts';
import { checkOpen } from '../keyed/late-access.ts';
import type { AccessScope } from '../keyed/ports.ts';
import type { ValueCell } from '../keyed/value-cell.ts';
import type { ValueHandle } from './handles.ts';

/** A value state as one record sees it. */
export class ValueState<T> implements ValueHandle<T> {
  readonly #cell: ValueCell<T>;
  readonly #entry: Entry;
  readonly #scope: AccessScope;

  constructor(cell: ValueCell<T>, entry: Entry, scope: AccessScope) {
    this.#cell = cell;
    this.#entry = entry;
    this.#scope = scope;
  }

  get(): MaybePromise<T | undefined> {
    checkOpen(this.#scope);
    return this.#cell.read(this.#entry, this.#scope);
  }

  set(value: T): void {
    checkOpen(this.#scope);
    this.#cell.write(this.#entry, value);
  }

  clear(): void {
    checkOpen(this.#scope);
    this.#cell.write(this.#entry, undefined);
  }

  update(change: (value: T | undefined) => T | undefined): MaybePromise<T | undefined> {
    const value = this.get();
    // Read again when it has come: another update of the same record may have been first.
    if (isPending(value)) return value.then(() => this.#change(change, this.#cell.at(this.#entry)));
    return this.#change(change, value);
  }

  #change(change: (value: T | undefined) => T | undefined, value: T | undefined): T | undefined {
    checkOpen(this.#scope);
    const next = change(value);
    this.#cell.write(this.#entry, next);
    return next;
  }
}
