import { ByteReader, ByteWriter, compareBytes, type MaybePromise, prefixEnd } from '@millrace/kernel';
import type { Codec } from '../codec.ts';
import type { MapDescriptor } from '../handles/descriptors.ts';
import type { MapRange } from '../handles/handles.ts';
import type { Ttl } from '../handles/ttl.ts';
import { primitiveKey } from '../keys/primitive-key.ts';
import { packedItem } from '../packed.ts';
import type { ScanPage, StateTable } from '../store.ts';
import { type Entry, guessBytes, unloaded } from './entry.ts';
import { checkOpen } from './late-access.ts';
import { MapContents, type MapItem } from './map-contents.ts';
import type { AccessScope } from './ports.ts';
import { type CellContext, expiryOf, type StateDefinition } from './state-definition.ts';
import type { StoredValue } from './stored-value.ts';

/** Items of one map that stay at hand after a save; above it the clean ones are forgotten. */
const itemsAtHandMax = 4096;
const itemBytes = 120;

/** A range of a map in stored keys. */
interface StoredRange {
  readonly prefixLength: number;
  readonly start: Uint8Array;
  readonly end: Uint8Array | undefined;
}

/** One map state over all keys. */
export class MapCell<K, V> {
  readonly #index: number;
  readonly #bit: number;
  readonly #id: number;
  readonly #ttl: Ttl | undefined;
  readonly #keyCodec: Codec<K>;
  readonly #stored: StoredValue<V>;
  readonly #context: CellContext;
  readonly #table: StateTable;
  readonly #keyWriter = new ByteWriter(128);

  constructor(definition: StateDefinition, context: CellContext, table: StateTable) {
    const descriptor = definition.descriptor as MapDescriptor<K, V>;
    this.#index = definition.index;
    this.#bit = 1 << definition.index;
    this.#id = definition.id;
    this.#ttl = descriptor.ttl;
    this.#keyCodec = descriptor.keyCodec;
    this.#stored = definition.stored as StoredValue<V>;
    this.#context = context;
    this.#table = table;
  }

  get(entry: Entry, scope: AccessScope, key: K): MaybePromise<V | undefined> {
    const contents = this.#contents(entry);
    const item = contents.items.get(primitiveKey(key));
    if (item !== undefined) return this.#live(entry, contents, item);
    if (contents.complete) return undefined;
    const { reader, scratch } = this.#context;
    scratch.reset();
    this.#context.keys.write(scratch, entry, this.#id);
    const prefixLength = scratch.position;
    this.#keyCodec.encode(key, scratch);
    const keyBytes = scratch.bytes.slice(prefixLength, scratch.position);
    let installed: MapItem;
    try {
      const answer = reader.peek(scratch);
      if (answer === 'unknown') return this.#getLater(entry, scope, key, keyBytes);
      installed = this.#install(entry, key, keyBytes, answer === 'found' ? reader.found : undefined);
    } catch (error) {
      throw this.#context.failed(error);
    }
    return this.#live(entry, contents, installed);
  }

  /** `undefined` deletes. */
  set(entry: Entry, key: K, value: V | undefined): void {
    const contents = this.#contents(entry);
    const primitive = primitiveKey(key);
    let item = contents.items.get(primitive);
    if (item === undefined) {
      item = { key, keyBytes: this.#encodeKey(key), value, expiresAtMs: 0, dirty: false };
      contents.items.set(primitive, item);
      this.#grow(entry, itemBytes + item.keyBytes.length + guessBytes(value));
    }
    item.value = value;
    item.expiresAtMs = expiryOf(this.#ttl, this.#context.clock);
    this.#changed(entry, contents, item);
  }

  /** As of the call; see {@link MapHandle.entries}. */
  entries(entry: Entry, scope: AccessScope, range: MapRange<K>): AsyncGenerator<readonly [K, V]> {
    const contents = this.#contents(entry);
    const stored = this.#storedRange(entry, range);
    const own = this.#ownItems(contents, stored);
    if (contents.complete) return this.#walk(scope, own, undefined, stored);
    const pages = this.#table.scan({ start: stored.start, end: stored.end })[Symbol.asyncIterator]();
    return this.#walk(scope, own, pages, stored);
  }

  /** Deletes all entries as of the call. */
  clear(entry: Entry, scope: AccessScope): MaybePromise<void> {
    const contents = this.#contents(entry);
    for (const item of contents.items.values()) {
      if (item.value === undefined) continue;
      item.value = undefined;
      this.#changed(entry, contents, item);
    }
    return contents.complete ? undefined : this.#clearStored(entry, scope, contents);
  }

  /** Appends the changed items of a dirty entry to the writer's batch. */
  save(entry: Entry): void {
    const contents = this.#contents(entry);
    const { writer } = this.#context;
    const { batch } = writer;
    for (const item of contents.changed) {
      item.dirty = false;
      batch.begin();
      this.#context.keys.write(batch.arena, entry, this.#id);
      batch.arena.raw(item.keyBytes);
      batch.endKey();
      if (item.value === undefined) {
        batch.delete();
        this.#drop(entry, contents, item);
      } else {
        this.#stored.encode(item.value as V, item.expiresAtMs, batch.arena);
        batch.put(item.expiresAtMs);
      }
      writer.addedForReads();
    }
    contents.changed.length = 0;
    if (contents.items.size > itemsAtHandMax) {
      contents.forget();
      this.#grow(entry, -(entry.sizes[this.#index] as number));
    }
  }

  /** The table knows that the item is gone: a map whose keys come and go must not grow by those that went. */
  #drop(entry: Entry, contents: MapContents, item: MapItem): void {
    if (!contents.items.delete(primitiveKey(item.key as K))) return;
    contents.forgotten++;
    this.#grow(entry, -Math.min(entry.sizes[this.#index] as number, itemBytes + item.keyBytes.length));
  }

  #contents(entry: Entry): MapContents {
    const value = entry.values[this.#index];
    if (value !== unloaded) return value as MapContents;
    const contents = new MapContents();
    entry.values[this.#index] = contents;
    return contents;
  }

  #encodeKey(key: K): Uint8Array {
    this.#keyWriter.reset();
    this.#keyCodec.encode(key, this.#keyWriter);
    return this.#keyWriter.copy();
  }

  async #getLater(entry: Entry, scope: AccessScope, key: K, keyBytes: Uint8Array): Promise<V | undefined> {
    const contents = this.#contents(entry);
    const { forgotten } = contents;
    scope.enter();
    try {
      const bytes = await this.#context.reader.later(this.#context.scratch);
      const known = contents.items.get(primitiveKey(key));
      if (known !== undefined) return this.#live(entry, contents, known);
      if (contents.complete) return undefined;
      const reader = bytes === undefined ? undefined : new ByteReader(bytes);
      if (contents.forgotten === forgotten) {
        this.#learn(entry, keyBytes, bytes);
        return this.#live(entry, contents, this.#install(entry, key, keyBytes, reader));
      }
      return reader === undefined ? undefined : this.#stored.decode(reader);
    } catch (error) {
      throw this.#context.failed(error);
    } finally {
      scope.leave();
    }
  }

  #learn(entry: Entry, keyBytes: Uint8Array, bytes: Uint8Array | undefined): void {
    const { reader, scratch, keys } = this.#context;
    scratch.reset();
    keys.write(scratch, entry, this.#id);
    scratch.raw(keyBytes);
    reader.learn(scratch, bytes);
  }

  #install(entry: Entry, key: K, keyBytes: Uint8Array, reader: ByteReader | undefined): MapItem {
    const length = reader?.remaining ?? 0;
    const value = reader === undefined ? undefined : this.#stored.decode(reader);
    const expiresAtMs = reader === undefined ? 0 : this.#stored.expiresAtMs;
    const item: MapItem = { key, keyBytes, value, expiresAtMs, dirty: false };
    this.#contents(entry).items.set(primitiveKey(key), item);
    this.#grow(entry, itemBytes + keyBytes.length + 2 * length);
    return item;
  }

  #live(entry: Entry, contents: MapContents, item: MapItem): V | undefined {
    if (item.value === undefined || item.expiresAtMs === 0) return item.value as V | undefined;
    const nowMs = this.#context.clock.nowMs();
    if (nowMs >= item.expiresAtMs) {
      item.value = undefined;
      return undefined;
    }
    const ttl = this.#ttl;
    if (ttl?.refresh === 'read-and-write' && nowMs + ttl.durationMs > item.expiresAtMs) {
      item.expiresAtMs = nowMs + ttl.durationMs;
      this.#changed(entry, contents, item);
    }
    return item.value as V;
  }

  #changed(entry: Entry, contents: MapContents, item: MapItem): void {
    if (item.dirty) return;
    item.dirty = true;
    contents.changed.push(item);
    this.#context.markDirty(entry, this.#bit, 1);
  }

  #storedRange(entry: Entry, range: MapRange<K>): StoredRange {
    const writer = new ByteWriter(64);
    this.#context.keys.write(writer, entry, this.#id);
    const prefix = writer.copy();
    const bound = (key: K): Uint8Array => {
      writer.position = prefix.length;
      this.#keyCodec.encode(key, writer);
      return writer.copy();
    };
    return {
      prefixLength: prefix.length,
      start: range.from === undefined ? prefix : bound(range.from),
      end: range.until === undefined ? prefixEnd(prefix) : bound(range.until),
    };
  }

  /** Copies of the items that the table does not know as they are, in order; all live ones when nothing else exists. */
  #ownItems(contents: MapContents, stored: StoredRange): MapItem[] {
    const from = stored.start.subarray(stored.prefixLength);
    const until = stored.end?.subarray(stored.prefixLength);
    const wholeMap = until === undefined || until.length === 0;
    const source = contents.complete ? contents.items.values() : contents.changed;
    const own: MapItem[] = [];
    for (const item of source) {
      if (compareBytes(item.keyBytes, from) < 0) continue;
      if (!wholeMap && compareBytes(item.keyBytes, until) >= 0) continue;
      own.push({ ...item });
    }
    return own.toSorted((a, b) => compareBytes(a.keyBytes, b.keyBytes));
  }

  /** Merges the table's entries with newer ones of the same key. */
  async *#walk(
    scope: AccessScope,
    own: readonly MapItem[],
    pages: AsyncIterator<ScanPage> | undefined,
    stored: StoredRange,
  ): AsyncGenerator<readonly [K, V]> {
    let at = 0;
    try {
      for (;;) {
        const page = pages === undefined ? undefined : await this.#nextPage(pages, scope);
        if (page === undefined) break;
        for (let i = 0; i < page.keys.count; i++) {
          const keyBytes = packedItem(page.keys, i).subarray(stored.prefixLength);
          let order = -1;
          while (at < own.length) {
            order = compareBytes((own[at] as MapItem).keyBytes, keyBytes);
            if (order >= 0) break;
            const item = own[at++] as MapItem;
            if (this.#isLive(item)) yield [item.key as K, item.value as V];
            checkOpen(scope);
          }
          if (order === 0 && at < own.length) continue;
          const value = this.#decode(this.#stored, packedItem(page.values, i));
          const { expiresAtMs } = this.#stored;
          if (expiresAtMs !== 0 && this.#context.clock.nowMs() >= expiresAtMs) continue;
          yield [this.#decode(this.#keyCodec, keyBytes), value];
          checkOpen(scope);
        }
      }
      for (; at < own.length; at++) {
        const item = own[at] as MapItem;
        if (this.#isLive(item)) yield [item.key as K, item.value as V];
        checkOpen(scope);
      }
    } finally {
      await pages?.return?.();
    }
  }

  #isLive(item: MapItem): boolean {
    if (item.value === undefined) return false;
    return item.expiresAtMs === 0 || this.#context.clock.nowMs() < item.expiresAtMs;
  }

  async #nextPage(pages: AsyncIterator<ScanPage>, scope: AccessScope): Promise<ScanPage | undefined> {
    checkOpen(scope);
    scope.enter();
    try {
      const next = await pages.next();
      return next.done === true ? undefined : next.value;
    } catch (error) {
      throw this.#context.failed(error);
    } finally {
      scope.leave();
    }
  }

  #decode<X>(codec: { decode(reader: ByteReader): X }, bytes: Uint8Array): X {
    try {
      return codec.decode(new ByteReader(bytes));
    } catch (error) {
      throw this.#context.failed(error);
    }
  }

  async #clearStored(entry: Entry, scope: AccessScope, contents: MapContents): Promise<void> {
    const { forgotten } = contents;
    for await (const [key] of this.entries(entry, scope, {})) {
      const primitive = primitiveKey(key);
      if (contents.items.has(primitive) && contents.forgotten === forgotten) continue;
      this.set(entry, key, undefined);
    }
    if (contents.forgotten === forgotten) contents.complete = true;
  }

  #grow(entry: Entry, bytes: number): void {
    entry.sizes[this.#index] = (entry.sizes[this.#index] as number) + bytes;
    if (entry.ringIndex >= 0) this.#context.workingSet.resize(entry, entry.bytes + bytes);
  }
}
