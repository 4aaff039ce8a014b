import { compareRanges, isPending, type MaybePromise } from '@millrace/kernel';
import type { Cursor } from './cursor.ts';

interface Source {
  readonly cursor: Cursor;
  /** 0 is the newest. */
  readonly age: number;
}

/**
 * The newest version of every key of several cursors, given newest first. The sources are kept in order of their keys;
 * one that has moved is put back from the front, which costs one comparison where one source is much larger than the
 * others, as a level is beside what is merged into it.
 */
export class MergeCursor {
  /** By key, then by age; exhausted ones are dropped. */
  readonly #sources: Source[];
  /** How many sources stand at the smallest key: the first is the newest, the others are shadowed by it. */
  #tied = 0;

  constructor(cursors: readonly Cursor[]) {
    this.#sources = cursors.map((cursor, age) => ({ cursor, age }));
  }

  get valid(): boolean {
    return this.#tied > 0;
  }

  /** The source that stands at the current entry. */
  get at(): Cursor {
    return (this.#sources[0] as Source).cursor;
  }

  open(): MaybePromise<void> {
    const pending = this.#sources.map(({ cursor }) => cursor.open()).filter(isPending);
    this.#tied = this.#sources.length;
    return pending.length === 0 ? this.#settle() : Promise.all(pending).then(() => this.#settle());
  }

  next(): MaybePromise<void> {
    let pending: Array<Promise<void>> | undefined;
    for (let i = 0; i < this.#tied; i++) {
      const moved = (this.#sources[i] as Source).cursor.next();
      if (isPending(moved)) (pending ??= []).push(moved);
    }
    return pending === undefined ? this.#settle() : Promise.all(pending).then(() => this.#settle());
  }

  /** Puts the sources that have moved, the first ones, back in order. */
  #settle(): void {
    const sources = this.#sources;
    for (let i = this.#tied - 1; i >= 0; i--) {
      if ((sources[i] as Source).cursor.valid) this.#sink(i);
      else sources.splice(i, 1);
    }
    const first = sources[0];
    let tied = first === undefined ? 0 : 1;
    while (tied < sources.length && compareKeys(sources[tied] as Source, first as Source) === 0) tied++;
    this.#tied = tied;
  }

  /** Moves the source at `index` behind those that come before it; what follows it is in order. */
  #sink(index: number): void {
    const sources = this.#sources;
    const source = sources[index] as Source;
    let at = index;
    for (let next = sources[at + 1]; next !== undefined; next = sources[at + 1]) {
      const order = compareKeys(next, source);
      if (order > 0 || (order === 0 && next.age > source.age)) break;
      sources[at++] = next;
    }
    sources[at] = source;
  }
}

function compareKeys({ cursor: a }: Source, { cursor: b }: Source): number {
  return compareRanges(a.bytes, a.keyStart, a.keyEnd, b.bytes, b.keyStart, b.keyEnd);
}
