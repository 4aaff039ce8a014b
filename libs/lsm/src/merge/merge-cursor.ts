import { compareRanges, isPending, type MaybePromise } from '@millrace/kernel';
import type { Cursor } from './cursor.ts';

/**
 * The newest version of every key of several cursors, given newest first. A linear search for the smallest key: there
 * are few sources, and it finds the shadowed versions in the same pass.
 */
export class MergeCursor {
  readonly #sources: readonly Cursor[];
  /** Sources at the current key, the newest first; the others are shadowed by it. */
  readonly #tied: Cursor[] = [];
  #current: Cursor | undefined;
  /** Versions passed over so far because a newer one hid them. */
  shadowed = 0;

  constructor(sources: readonly Cursor[]) {
    this.#sources = sources;
  }

  get valid(): boolean {
    return this.#current !== undefined;
  }

  /** The source that stands at the current entry. */
  get at(): Cursor {
    return this.#current as Cursor;
  }

  open(): MaybePromise<void> {
    const pending = this.#sources.map((source) => source.open()).filter(isPending);
    if (pending.length === 0) return this.#settle();
    return Promise.all(pending).then(() => this.#settle());
  }

  next(): MaybePromise<void> {
    this.shadowed += this.#tied.length - 1;
    let pending: Array<Promise<void>> | undefined;
    for (const source of this.#tied) {
      const moved = source.next();
      if (isPending(moved)) (pending ??= []).push(moved);
    }
    if (pending === undefined) return this.#settle();
    return Promise.all(pending).then(() => this.#settle());
  }

  #settle(): void {
    const tied = this.#tied;
    tied.length = 0;
    let best: Cursor | undefined;
    for (const source of this.#sources) {
      if (!source.valid) continue;
      const order =
        best === undefined
          ? -1
          : compareRanges(source.bytes, source.keyStart, source.keyEnd, best.bytes, best.keyStart, best.keyEnd);
      if (order > 0) continue;
      if (order < 0) {
        best = source;
        tied.length = 0;
      }
      tied.push(source);
    }
    this.#current = best;
  }
}
