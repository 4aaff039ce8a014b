import { isPending, type MaybePromise } from '@millrace/kernel';
import type { EntryParts } from '../sst/block-layout.ts';
import type { SstCursor } from '../sst/sst-cursor.ts';
import type { Cursor } from './cursor.ts';

const nothing = new Uint8Array();

/** The tables of a sorted run, one behind the other; a table is opened when its turn comes. */
export class RunCursor implements Cursor, EntryParts {
  valid = false;
  bytes: Uint8Array = nothing;
  keyStart = 0;
  keyEnd = 0;
  valueStart = 0;
  valueEnd = 0;
  isTombstone = false;
  expiresAtMs = 0;
  readonly #tables: ReadonlyArray<() => SstCursor>;
  #next = 0;
  #current: SstCursor | undefined;

  constructor(tables: ReadonlyArray<() => SstCursor>) {
    this.#tables = tables;
  }

  open(): MaybePromise<void> {
    return this.#openNext();
  }

  next(): MaybePromise<void> {
    const moved = (this.#current as SstCursor).next();
    return isPending(moved) ? moved.then(() => this.#settle()) : this.#settle();
  }

  #openNext(): MaybePromise<void> {
    const make = this.#tables[this.#next++];
    if (make === undefined) {
      this.valid = false;
      this.#current = undefined;
      return undefined;
    }
    this.#current = make();
    const opened = this.#current.open();
    return isPending(opened) ? opened.then(() => this.#settle()) : this.#settle();
  }

  #settle(): MaybePromise<void> {
    const at = this.#current as SstCursor;
    if (!at.valid) return this.#openNext();
    this.valid = true;
    this.bytes = at.bytes;
    this.keyStart = at.keyStart;
    this.keyEnd = at.keyEnd;
    this.valueStart = at.valueStart;
    this.valueEnd = at.valueEnd;
    this.isTombstone = at.isTombstone;
    this.expiresAtMs = at.expiresAtMs;
    return undefined;
  }
}
