import { ByteReader, type ByteWriter, type MaybePromise } from '@millrace/kernel';
import type { Ttl } from '../handles/ttl.ts';
import { type Entry, guessBytes, unloaded } from './entry.ts';
import type { AccessScope } from './ports.ts';
import type { Row } from './row.ts';
import { type CellContext, expiryOf, type StateDefinition } from './state-definition.ts';
import type { StoredValue } from './stored-value.ts';

/**
 * One state that is a single value per key (value, list, reducing, aggregating), over all keys. Its values have entries
 * of their own in the table, or lie in the key's {@link Row}.
 */
export class ValueCell<T> {
  /** Set before first use when the state belongs to the row. */
  row: Row | undefined = undefined;
  readonly #index: number;
  readonly #bit: number;
  readonly #id: number;
  readonly #ttl: Ttl | undefined;
  readonly #stored: StoredValue<T>;
  readonly #context: CellContext;

  constructor(definition: StateDefinition, context: CellContext) {
    this.#index = definition.index;
    this.#bit = 1 << definition.index;
    this.#id = definition.id;
    this.#ttl = definition.descriptor.ttl;
    this.#stored = definition.stored as StoredValue<T>;
    this.#context = context;
  }

  read(entry: Entry, scope: AccessScope): MaybePromise<T | undefined> {
    const value = entry.values[this.#index];
    if (value === unloaded)
      return this.row === undefined ? this.#load(entry, scope) : this.#loadRow(this.row, entry, scope);
    return this.#ttl === undefined ? (value as T | undefined) : this.#live(entry, this.#ttl);
  }

  /** The value of an entry that has been read. */
  at(entry: Entry): T | undefined {
    return this.#ttl === undefined ? (entry.values[this.#index] as T | undefined) : this.#live(entry, this.#ttl);
  }

  write(entry: Entry, value: T | undefined): void {
    const index = this.#index;
    entry.values[index] = value;
    if (this.#ttl !== undefined) entry.expiresAtMs[index] = expiryOf(this.#ttl, this.#context.clock);
    if (entry.sizes[index] === 0) this.#resize(entry, guessBytes(value));
    if ((entry.dirty & this.#bit) === 0) this.#context.markDirty(entry, this.#bit, 1);
  }

  /** Accounts for growth inside a value, before its next encoding tells its size. */
  grow(entry: Entry, bytes: number): void {
    this.#resize(entry, (entry.sizes[this.#index] as number) + bytes);
  }

  /** Appends the value of a dirty entry to the writer's batch; not for states of the row. */
  save(entry: Entry): void {
    const { writer, keys } = this.#context;
    const { batch } = writer;
    batch.begin();
    keys.write(batch.arena, entry, this.#id);
    batch.endKey();
    if (entry.values[this.#index] === undefined) {
      batch.delete();
    } else {
      this.encode(entry, batch.arena);
      batch.put(entry.expiresAtMs[this.#index] as number);
    }
    writer.addedForReads();
  }

  /** Appends the stored form of a value that is there. */
  encode(entry: Entry, writer: ByteWriter): void {
    const start = writer.position;
    this.#stored.encode(entry.values[this.#index] as T, entry.expiresAtMs[this.#index] as number, writer);
    this.#resize(entry, 16 + 2 * (writer.position - start));
  }

  /** Takes the value that `reader` stands at, in `length` bytes. */
  install(entry: Entry, reader: ByteReader, length: number): void {
    entry.values[this.#index] = this.#stored.decode(reader);
    this.#resize(entry, 16 + 2 * length);
    if (this.#ttl !== undefined) {
      entry.expiresAtMs[this.#index] = this.#stored.expiresAtMs;
    } else if (this.#stored.expiresAtMs !== 0) {
      // The state has lost its TTL: write the value anew, so that the table forgets the expiry, too.
      this.#context.markDirty(entry, this.#bit, 1);
    }
  }

  #loadRow(row: Row, entry: Entry, scope: AccessScope): MaybePromise<T | undefined> {
    const pending = row.load(entry, this.#index, scope);
    return pending === undefined ? this.at(entry) : pending.then(() => this.at(entry));
  }

  #load(entry: Entry, scope: AccessScope): MaybePromise<T | undefined> {
    const { reader, scratch, keys } = this.#context;
    scratch.reset();
    keys.write(scratch, entry, this.#id);
    try {
      const answer = reader.peek(scratch);
      if (answer === 'unknown') return this.#loadLater(entry, scope);
      this.#found(entry, answer === 'found' ? reader.found : undefined);
    } catch (error) {
      throw this.#context.failed(error);
    }
    return this.at(entry);
  }

  async #loadLater(entry: Entry, scope: AccessScope): Promise<T | undefined> {
    const { reader, scratch, keys } = this.#context;
    scope.enter();
    try {
      const bytes = await reader.later(scratch);
      if (entry.values[this.#index] === unloaded) {
        scratch.reset();
        keys.write(scratch, entry, this.#id);
        reader.learn(scratch, bytes);
        this.#found(entry, bytes === undefined ? undefined : new ByteReader(bytes));
      }
      return this.at(entry);
    } catch (error) {
      throw this.#context.failed(error);
    } finally {
      scope.leave();
    }
  }

  #found(entry: Entry, reader: ByteReader | undefined): void {
    if (reader === undefined) entry.values[this.#index] = undefined;
    else this.install(entry, reader, reader.remaining);
  }

  #live(entry: Entry, ttl: Ttl): T | undefined {
    const index = this.#index;
    const value = entry.values[index] as T | undefined;
    if (value === undefined) return undefined;
    const nowMs = this.#context.clock.nowMs();
    const expiresAtMs = entry.expiresAtMs[index] as number;
    if (expiresAtMs !== 0 && nowMs >= expiresAtMs) {
      // The stored value has the same expiry within itself, so nothing needs to be written.
      entry.values[index] = undefined;
      return undefined;
    }
    if (ttl.refresh === 'read-and-write' && nowMs + ttl.durationMs > expiresAtMs) {
      entry.expiresAtMs[index] = nowMs + ttl.durationMs;
      if ((entry.dirty & this.#bit) === 0) this.#context.markDirty(entry, this.#bit, 1);
    }
    return value;
  }

  #resize(entry: Entry, bytes: number): void {
    const difference = bytes - (entry.sizes[this.#index] as number);
    entry.sizes[this.#index] = bytes;
    if (entry.ringIndex >= 0) this.#context.workingSet.resize(entry, entry.bytes + difference);
  }
}
