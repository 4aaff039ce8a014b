import { ByteReader, type ByteWriter, MillraceError } from '@millrace/kernel';
import { rowStateId } from '../keys/key-layout.ts';
import { type Entry, unloaded } from './entry.ts';
import type { AccessScope } from './ports.ts';
import type { CellContext } from './state-definition.ts';
import type { ValueCell } from './value-cell.ts';

/** Rows fetched behind handlers that only write, at a time; above it no record is admitted. */
export const fetchesMax = 1024;

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
 * A row is written as a whole, so its other values have to be known: where a handler writes and has not read, the row is
 * fetched behind it, and the entry waits with its write until that is done.
 */
export class Row {
  /** Bits of the row's states in an entry. */
  readonly mask: number;
  readonly #cells: readonly RowCell[];
  readonly #byId = new Map<number, RowCell>();
  readonly #context: CellContext;
  readonly #fetches = new Set<Promise<void>>();

  constructor(cells: readonly RowCell[], context: CellContext) {
    this.#cells = cells;
    this.#context = context;
    this.mask = cells.reduce((mask, { index }) => mask | (1 << index), 0);
    for (const cell of cells) this.#byId.set(cell.id, cell);
  }

  /** Rows that are being fetched behind handlers. */
  get fetching(): number {
    return this.#fetches.size;
  }

  /** Resolves when one of them has come. */
  async fetched(): Promise<void> {
    await Promise.race(this.#fetches);
  }

  /** Reads the row of an entry that does not have it; a promise when it is not at hand. */
  load(entry: Entry, scope: AccessScope): Promise<void> | undefined {
    if (entry.fetching !== undefined) return waited(entry.fetching, scope);
    if (this.#peek(entry)) return undefined;
    return waited(this.#fetch(entry), scope);
  }

  /** For a write to an entry without its row. */
  fill(entry: Entry): void {
    if (entry.fetching !== undefined || this.#peek(entry)) return;
    const fetch = this.#fetch(entry);
    this.#fetches.add(fetch);
    // A failure has been noted as that of the whole state.
    const done = (): void => void this.#fetches.delete(fetch);
    fetch.then(done, done);
  }

  /** Appends the row to the writer's batch. */
  save(entry: Entry): void {
    const { writer, keys } = this.#context;
    const { batch } = writer;
    const { arena } = batch;
    batch.begin();
    keys.write(arena, entry, rowStateId);
    batch.endKey();
    const start = arena.position;
    let expiresAtMs = 0;
    let endless = entry.rest !== undefined;
    for (let i = 0; i < this.#cells.length; i++) {
      const { id, index, name, cell } = this.#cells[i] as RowCell;
      if (entry.values[index] === undefined) continue;
      arena.u16be(id);
      arena.u32le(0);
      const from = arena.position;
      try {
        cell.encode(entry, arena);
      } catch (error) {
        throw savingFailed(entry, name, error);
      }
      arena.view.setUint32(from - 4, arena.position - from, true);
      const cellExpiresAtMs = entry.expiresAtMs[index] as number;
      if (cellExpiresAtMs === 0) endless = true;
      else if (cellExpiresAtMs > expiresAtMs) expiresAtMs = cellExpiresAtMs;
    }
    if (entry.rest !== undefined) arena.raw(entry.rest);
    if (arena.position === start) batch.delete();
    else batch.put(endless ? 0 : expiresAtMs);
    writer.addedForReads();
  }

  #peek(entry: Entry): boolean {
    const { reader, scratch } = this.#context;
    this.#key(entry);
    try {
      const answer = reader.peek(scratch);
      if (answer === 'unknown') return false;
      this.#install(entry, answer === 'found' ? reader.found : undefined);
      return true;
    } catch (error) {
      throw this.#context.failed(error);
    }
  }

  /** Call after {@link #peek}, which leaves the key in the scratch. */
  #fetch(entry: Entry): Promise<void> {
    entry.pins++;
    const fetching = this.#fetched(entry, this.#context.reader.later(this.#context.scratch));
    entry.fetching = fetching;
    return fetching;
  }

  async #fetched(entry: Entry, reading: Promise<Uint8Array | undefined>): Promise<void> {
    const { reader, scratch } = this.#context;
    try {
      const bytes = await reading;
      this.#key(entry);
      reader.learn(scratch, bytes);
      this.#install(entry, bytes === undefined ? undefined : new ByteReader(bytes));
    } catch (error) {
      throw this.#context.failed(error);
    } finally {
      entry.fetching = undefined;
      entry.pins--;
    }
  }

  #key(entry: Entry): ByteWriter {
    const { scratch, keys } = this.#context;
    scratch.reset();
    keys.write(scratch, entry, rowStateId);
    return scratch;
  }

  /** Takes the values that have not been written meanwhile. */
  #install(entry: Entry, reader: ByteReader | undefined): void {
    if (reader !== undefined) this.#take(entry, reader);
    for (let i = 0; i < this.#cells.length; i++) {
      const { index } = this.#cells[i] as RowCell;
      if (entry.values[index] === unloaded) entry.values[index] = undefined;
    }
    entry.hasRow = true;
  }

  #take(entry: Entry, reader: ByteReader): void {
    const { end } = reader;
    let rest: Uint8Array[] | undefined;
    while (reader.position < end) {
      const start = reader.position;
      const id = reader.u16be();
      const next = reader.u32le() + reader.position;
      const known = this.#byId.get(id);
      if (known === undefined) (rest ??= []).push(reader.bytes.slice(start, next));
      else if (entry.values[known.index] === unloaded) known.cell.install(entry, reader, next - reader.position);
      reader.position = next;
    }
    if (rest !== undefined) entry.rest = Buffer.concat(rest);
  }
}

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
