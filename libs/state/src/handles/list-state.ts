import { isPending, type MaybePromise } from '@millrace/kernel';
import { type Entry, guessBytes } from '../keyed/entry.ts';
import { checkOpen } from '../keyed/late-access.ts';
import type { AccessScope } from '../keyed/ports.ts';
import type { ValueCell } from '../keyed/value-cell.ts';
import type { ListHandle } from './handles.ts';

/** A list state as one record sees it; callers get copies, so that a later `add` does not change what they hold. */
export class ListState<T> implements ListHandle<T> {
  readonly #cell: ValueCell<readonly T[]>;
  readonly #entry: Entry;
  readonly #scope: AccessScope;

  constructor(cell: ValueCell<readonly T[]>, entry: Entry, scope: AccessScope) {
    this.#cell = cell;
    this.#entry = entry;
    this.#scope = scope;
  }

  get(): MaybePromise<readonly T[]> {
    checkOpen(this.#scope);
    const items = this.#cell.read(this.#entry, this.#scope);
    return isPending(items) ? items.then(copied) : copied(items);
  }

  add(value: T): MaybePromise<void> {
    return this.addAll([value]);
  }

  addAll(values: readonly T[]): MaybePromise<void> {
    checkOpen(this.#scope);
    const items = this.#cell.read(this.#entry, this.#scope);
    if (isPending(items)) return items.then(() => this.#append(values));
    this.#append(values);
  }

  set(values: readonly T[]): void {
    checkOpen(this.#scope);
    this.#cell.write(this.#entry, values.length === 0 ? undefined : [...values]);
  }

  clear(): void {
    checkOpen(this.#scope);
    this.#cell.write(this.#entry, undefined);
  }

  #append(values: readonly T[]): void {
    checkOpen(this.#scope);
    if (values.length === 0) return;
    // The cell's array is its own: decoded by it, or copied by `set`.
    const items = (this.#cell.at(this.#entry) ?? []) as T[];
    for (const value of values) {
      items.push(value);
      this.#cell.grow(this.#entry, guessBytes(value));
    }
    this.#cell.write(this.#entry, items);
  }
}

function copied<T>(items: readonly T[] | undefined): readonly T[] {
  return items === undefined ? [] : [...items];
}
