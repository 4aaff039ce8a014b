import { ByteReader, type MaybePromise } from '@millrace/kernel';
import type { Ttl } from '../handles/ttl.ts';
import { type Entry, guessBytes, unloaded } from './entry.ts';
import type { AccessScope } from './ports.ts';
import { type CellContext, expiryOf, type StateDefinition } from './state-definition.ts';
import type { StoredValue } from './stored-value.ts';

/** One state that is a single value per key (value, list, reducing, aggregating), over all keys. */
export class ValueCell<T> {
  readonly #index: number;
  readonly #bit: number;
  readonly #id: number;
  readonly #ttl: Ttl | undefined;
  readonly #stored: StoredValue<T>;
  /** Values are kept only while records use the entry (`Codec.external`). */
  readonly #transient: boolean;
  readonly #context: CellContext;

  constructor(definition: StateDefinition, context: CellContext) {
    this.#index = definition.index;
    this.#bit = 1 << definition.index;
    this.#id = definition.id;
    this.#ttl = definition.descriptor.ttl;
    this.#stored = definition.stored as StoredValue<T>;
    this.#transient = definition.stored.external;
    this.#context = context;
  }

  read(entry: Entry, scope: AccessScope): MaybePromise<T | undefined> {
    const value = entry.values[this.#index];
    if (value === unloaded) return this.#load(entry, scope);
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
    if (this.#transient) entry.transient |= this.#bit;
    if ((entry.dirty & this.#bit) === 0) this.#context.markDirty(entry, this.#bit, 1);
  }

  /** Accounts for growth inside a value, before its next encoding tells its size. */
  grow(entry: Entry, bytes: number): void {
    this.#resize(entry, (entry.sizes[this.#index] as number) + bytes);
  }

  /** Appends the value of a dirty entry to the writer's batch. */
  save(entry: Entry): void {
    const { writer, keys } = this.#context;
    const { batch } = writer;
    batch.begin();
    keys.write(batch.arena, entry, this.#id);
    batch.endKey();
    const value = entry.values[this.#index] as T | undefined;
    if (value === undefined) {
      batch.delete();
    } else {
      const start = batch.arena.position;
      const expiresAtMs = entry.expiresAtMs[this.#index] as number;
      this.#stored.encode(value, expiresAtMs, batch.arena);
      if (this.#transient && entry.pins === 0) this.release(entry);
      else this.#resize(entry, 16 + 2 * (batch.arena.position - start));
      batch.put(expiresAtMs);
    }
    writer.added();
  }

  /** Lets go of a value that the table has; the next read gets it from there. */
  release(entry: Entry): void {
    entry.transient &= ~this.#bit;
    entry.values[this.#index] = unloaded;
    this.#resize(entry, 0);
  }

  #load(entry: Entry, scope: AccessScope): MaybePromise<T | undefined> {
    const { reader, scratch, keys } = this.#context;
    scratch.reset();
    keys.write(scratch, entry, this.#id);
    try {
      const answer = reader.peek(scratch);
      if (answer === 'unknown') return this.#loadLater(entry, scope);
      this.#install(entry, answer === 'found' ? reader.found : undefined);
    } catch (error) {
      throw this.#context.failed(error);
    }
    return this.at(entry);
  }

  async #loadLater(entry: Entry, scope: AccessScope): Promise<T | undefined> {
    const { reader, scratch } = this.#context;
    scope.enter();
    try {
      const bytes = await reader.later(scratch);
      if (entry.values[this.#index] === unloaded) {
        this.#install(entry, bytes === undefined ? undefined : new ByteReader(bytes));
      }
      return this.at(entry);
    } catch (error) {
      throw this.#context.failed(error);
    } finally {
      scope.leave();
    }
  }

  #install(entry: Entry, reader: ByteReader | undefined): void {
    if (reader === undefined) {
      entry.values[this.#index] = undefined;
      return;
    }
    const length = reader.remaining;
    entry.values[this.#index] = this.#stored.decode(reader);
    if (this.#transient) entry.transient |= this.#bit;
    this.#resize(entry, 16 + 2 * length);
    if (this.#ttl !== undefined) {
      entry.expiresAtMs[this.#index] = this.#stored.expiresAtMs;
    } else if (this.#stored.expiresAtMs !== 0) {
      // The state has lost its TTL: write the value anew, so that the table forgets the expiry, too.
      this.#context.markDirty(entry, this.#bit, 1);
    }
  }

  #live(entry: Entry, ttl: Ttl): T | undefined {
    const index = this.#index;
    const value = entry.values[index] as T | undefined;
    if (value === undefined) return undefined;
    const nowMs = this.#context.clock.nowMs();
    const expiresAtMs = entry.expiresAtMs[index] as number;
    if (expiresAtMs !== 0 && nowMs >= expiresAtMs) {
      // The table hides it by the same expiry, so nothing needs to be written.
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
