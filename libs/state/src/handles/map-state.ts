import { isPending, type MaybePromise } from '@millrace/kernel';
import type { Entry } from '../keyed/entry.ts';
import { checkOpen } from '../keyed/late-access.ts';
import type { MapCell } from '../keyed/map-cell.ts';
import type { AccessScope } from '../keyed/ports.ts';
import type { MapHandle, MapRange } from './handles.ts';

/** A map state as one record sees it. */
export class MapState<K, V> implements MapHandle<K, V> {
  readonly #cell: MapCell<K, V>;
  readonly #entry: Entry;
  readonly #scope: AccessScope;

  constructor(cell: MapCell<K, V>, entry: Entry, scope: AccessScope) {
    this.#cell = cell;
    this.#entry = entry;
    this.#scope = scope;
  }

  get(key: K): MaybePromise<V | undefined> {
    checkOpen(this.#scope);
    return this.#cell.get(this.#entry, this.#scope, key);
  }

  set(key: K, value: V): void {
    checkOpen(this.#scope);
    this.#cell.set(this.#entry, key, value);
  }

  delete(key: K): void {
    checkOpen(this.#scope);
    this.#cell.set(this.#entry, key, undefined);
  }

  has(key: K): MaybePromise<boolean> {
    const value = this.get(key);
    return isPending(value) ? value.then((found) => found !== undefined) : value !== undefined;
  }

  entries(range: MapRange<K> = {}): AsyncIterable<readonly [K, V]> {
    checkOpen(this.#scope);
    return this.#cell.entries(this.#entry, this.#scope, range);
  }

  keys(range: MapRange<K> = {}): AsyncIterable<K> {
    return keysOf(this.entries(range));
  }

  clear(): MaybePromise<void> {
    checkOpen(this.#scope);
    return this.#cell.clear(this.#entry, this.#scope);
  }
}

async function* keysOf<K, V>(entries: AsyncIterable<readonly [K, V]>): AsyncGenerator<K> {
  for await (const [key] of entries) yield key;
}
