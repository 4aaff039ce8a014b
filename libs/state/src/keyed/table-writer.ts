import { isPending, type MaybePromise, type MillraceError } from '@millrace/kernel';
import type { StateTable } from '../store.ts';
import { WriteBatch } from '../write-batch.ts';
import type { TableCache } from './table-cache.ts';

const entriesMax = 800;
const bytesMax = 1 << 20;

/**
 * The one writer of a table. Puts and deletes gather in a batch that leaves when it is full and when asked; the order of
 * the table's calls is the order of the writes. A failed write stays: every later wait rejects with it.
 */
export class TableWriter {
  readonly batch = new WriteBatch();
  readonly #table: StateTable;
  readonly #cache: TableCache;
  readonly #failed: (error: unknown) => MillraceError;
  #pending: Promise<void> | undefined;

  /** `failed` notes a write that the table refused at once, and returns what to throw. */
  constructor(table: StateTable, cache: TableCache, failed: (error: unknown) => MillraceError) {
    this.#table = table;
    this.#cache = cache;
    this.#failed = failed;
  }

  /** Writes that the table has not taken yet; await it before making more. */
  get pending(): Promise<void> | undefined {
    return this.#pending;
  }

  /** Call after each entry of the batch that is read by key: reads find it in the cache from now on. */
  addedForReads(): void {
    this.#cache.wrote(this.batch);
    this.added();
  }

  /** Call after each other entry of the batch. */
  added(): void {
    if (this.batch.count >= entriesMax || this.batch.arena.position >= bytesMax) this.send();
  }

  /** Hands what has gathered to the table; from then on the table's reads see it. */
  send(): void {
    if (this.batch.count === 0) return;
    const writing = this.#write();
    this.batch.reset();
    if (!isPending(writing)) return;
    const both = this.#pending === undefined ? writing : together(this.#pending, writing);
    this.#pending = both;
    both.then(
      () => {
        if (this.#pending === both) this.#pending = undefined;
      },
      () => undefined,
    );
  }

  #write(): MaybePromise<void> {
    try {
      return this.#table.write(this.batch);
    } catch (error) {
      throw this.#failed(error);
    }
  }
}

async function together(first: Promise<void>, second: Promise<void>): Promise<void> {
  await Promise.all([first, second]);
}
