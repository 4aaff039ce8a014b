import { ByteReader, MillraceError } from '@millrace/kernel';
import { rowStateId } from '../keys/key-layout.ts';
import { type Entry, unloaded } from './entry.ts';
import type { AccessScope } from './ports.ts';
import type { CellContext } from './state-definition.ts';
import { storedExpiryMs } from './stored-value.ts';
import type { ValueCell } from './value-cell.ts';

/** A row state with the cell that reads and writes it. */
export interface RowCell {
  readonly id: number;
  readonly name: string;
  readonly index: number;
  readonly cell: ValueCell<unknown>;
}

/**
 * The single values of a key that lie together in one entry of the table: one read and one write for all of them. Stored
 * row = for each state that has a value: its id (2, big-endian) · length (4) · stored value.
 *
 * A value is decoded when it is first read; those that were not are copied as they are when the row is written. Where
 * they are not at hand then, because handlers wrote and did not read, the row is fetched and written when it has come.
 */
export class Row {
  /** Bits of the row's states in an entry. */
  readonly mask: number;
  readonly #cells: readonly RowCell[];
  readonly #byId = new Map<number, RowCell>();
  /** The table has row states that the job no longer declares. */
  readonly #keepsOthers: boolean;
  readonly #context: CellContext;
  /** Of the row being written. */
  #expiresAtMs = 0;
  #isEndless = false;
  #fetching = 0;
  #waiting: Array<() => void> = [];

  constructor(cells: readonly RowCell[], keepsOthers: boolean, context: CellContext) {
    this.#cells = cells;
    this.#keepsOthers = keepsOthers;
    this.#context = context;
    this.mask = cells.reduce((mask, { index }) => mask | (1 << index), 0);
    for (const cell of cells) this.#byId.set(cell.id, cell);
  }

  /** Rows on their way. */
  get fetching(): number {
    return this.#fetching;
  }

  /** Resolves when no row is on its way. */
  fetched(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Decodes the value of a cell that is {@link unloaded}; a promise when the row is not at hand. */
  load(entry: Entry, index: number, scope: AccessScope): Promise<void> | undefined {
    if (entry.fetching === undefined) {
      const reader = this.#peek(entry);
      if (reader !== 'unknown') {
        this.#decode(entry, reader, index);
        return undefined;
      }
    }
    return waited(entry.fetching ?? this.#fetch(entry), scope);
  }

  /** Appends the row to the writer's batch; false when it has to be fetched first, and then it is saved when it comes. */
  save(entry: Entry): boolean {
    const stored = this.#stored(entry);
    if (stored === 'unknown') {
      entry.awaitsRow = true;
      if (entry.fetching === undefined) void this.#fetch(entry).catch(ignored);
      return false;
    }
    this.#write(entry, stored);
    return true;
  }

  /** What a save has to keep of the stored row. Where that is on its way it is awaited, or it would come as news. */
  #stored(entry: Entry): ByteReader | 'unknown' | undefined {
    if (entry.fetching !== undefined) return 'unknown';
    return this.#needsStored(entry) ? this.#peek(entry) : undefined;
  }

  #needsStored(entry: Entry): boolean {
    if (this.#keepsOthers) return true;
    for (let i = 0; i < this.#cells.length; i++) {
      if (entry.values[(this.#cells[i] as RowCell).index] === unloaded) return true;
    }
    return false;
  }

  /** The stored row, `undefined` when there is none. */
  #peek(entry: Entry): ByteReader | 'unknown' | undefined {
    const { reader, scratch } = this.#context;
    this.#writeKey(entry);
    const answer = reader.peek(scratch);
    if (answer === 'unknown') return 'unknown';
    return answer === 'found' ? reader.found : undefined;
  }

  /** Call after {@link #peek}, which leaves the key in the scratch. */
  #fetch(entry: Entry): Promise<void> {
    entry.pins++;
    this.#fetching++;
    const fetching = this.#fetched(entry, this.#context.reader.later(this.#context.scratch));
    entry.fetching = fetching;
    return fetching;
  }

  async #fetched(entry: Entry, reading: Promise<Uint8Array | undefined>): Promise<void> {
    const { reader, scratch } = this.#context;
    try {
      const bytes = await reading;
      this.#writeKey(entry);
      reader.learn(scratch, bytes);
      const stored = bytes === undefined ? undefined : new ByteReader(bytes);
      for (let i = 0; i < this.#cells.length; i++) this.#decode(entry, stored, (this.#cells[i] as RowCell).index);
      if (entry.awaitsRow) this.#write(entry, stored);
    } catch (error) {
      throw this.#context.failed(error);
    } finally {
      entry.fetching = undefined;
      entry.pins--;
      if (--this.#fetching === 0) this.#wake();
    }
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  #writeKey(entry: Entry): void {
    const { scratch, keys } = this.#context;
    scratch.reset();
    keys.write(scratch, entry, rowStateId);
  }

  /** Takes the stored value of a cell, if it has not been read or written yet. Without a row, all are absent. */
  #decode(entry: Entry, reader: ByteReader | undefined, index: number): void {
    if (reader === undefined) return this.#absent(entry);
    if (entry.values[index] !== unloaded) return;
    const start = reader.position;
    const { end } = reader;
    let found = false;
    while (!found && reader.position < end) {
      const id = reader.u16be();
      const length = reader.u32le();
      const next = reader.position + length;
      const known = this.#byId.get(id);
      found = known !== undefined && known.index === index;
      if (found) this.#install(entry, known as RowCell, reader, length);
      reader.position = next;
    }
    if (!found) entry.values[index] = undefined;
    reader.position = start;
  }

  #install(entry: Entry, { cell }: RowCell, reader: ByteReader, length: number): void {
    try {
      cell.install(entry, reader, length);
    } catch (error) {
      throw this.#context.failed(error);
    }
  }

  #absent(entry: Entry): void {
    for (let i = 0; i < this.#cells.length; i++) {
      const { index } = this.#cells[i] as RowCell;
      if (entry.values[index] === unloaded) entry.values[index] = undefined;
    }
  }

  #write(entry: Entry, stored: ByteReader | undefined): void {
    const { writer, keys } = this.#context;
    const { batch } = writer;
    const { arena } = batch;
    entry.awaitsRow = false;
    entry.dirty &= ~this.mask;
    batch.begin();
    keys.write(arena, entry, rowStateId);
    batch.endKey();
    const start = arena.position;
    this.#expiresAtMs = 0;
    this.#isEndless = false;
    for (let i = 0; i < this.#cells.length; i++) {
      const { id, index, name, cell } = this.#cells[i] as RowCell;
      const value = entry.values[index];
      if (value === undefined || value === unloaded) continue;
      arena.u16be(id);
      arena.u32le(0);
      const from = arena.position;
      try {
        cell.encode(entry, arena);
      } catch (error) {
        throw savingFailed(entry, name, error);
      }
      arena.view.setUint32(from - 4, arena.position - from, true);
      this.#outlives(entry.expiresAtMs[index] as number);
    }
    if (stored !== undefined) this.#copyOthers(entry, stored);
    if (arena.position === start) batch.delete();
    else batch.put(this.#isEndless ? 0 : this.#expiresAtMs);
    writer.addedForReads();
  }

  /** The row being written ends no sooner than a value within it, which ends at `expiresAtMs`. */
  #outlives(expiresAtMs: number): void {
    if (expiresAtMs === 0) this.#isEndless = true;
    else if (expiresAtMs > this.#expiresAtMs) this.#expiresAtMs = expiresAtMs;
  }

  /** Appends the cells that were not decoded, as they are. */
  #copyOthers(entry: Entry, reader: ByteReader): void {
    const { arena } = this.#context.writer.batch;
    while (reader.position < reader.end) {
      const start = reader.position;
      const known = this.#byId.get(reader.u16be());
      const next = reader.u32le() + reader.position;
      if (known === undefined || entry.values[known.index] === unloaded) {
        this.#outlives(storedExpiryMs(reader.view, reader.position));
        arena.range(reader.bytes, start, next);
      }
      reader.position = next;
    }
  }
}

/** Noted as the failure of the whole state by then. */
function ignored(): void {}

async function waited(fetching: Promise<void>, scope: AccessScope): Promise<void> {
  scope.enter();
  try {
    await fetching;
  } finally {
    scope.leave();
  }
}

/** What to throw when a value cannot be saved: names state and key. */
export function savingFailed(entry: Entry, state: string, error: unknown): MillraceError {
  const cause = MillraceError.from(error, 'state-bad-value');
  const message = `state ${state}, key ${String(entry.primitive).slice(0, 80)}: ${cause.message}`;
  return new MillraceError(cause.code, message, { details: { ...cause.details, state }, cause });
}
