import { ByteWriter, compareRanges, isPending, type MaybePromise } from '@millrace/kernel';
import type { EntryPage } from '../answers.ts';
import type { Cursor } from '../merge/cursor.ts';
import { MergeCursor } from '../merge/merge-cursor.ts';

export interface ScanOptions {
  /** Newest first. */
  readonly sources: readonly Cursor[];
  /** Excluded; undefined: to the end. */
  readonly end: Uint8Array | undefined;
  readonly nowMs: number;
  readonly pageEntriesMax: number;
  readonly pageBytes: number;
  /** Called once, when the scan has ended in whatever way. */
  readonly release: () => void;
}

/** The live entries of merged sources in pages, none of them empty. */
export async function* scanPages(options: ScanOptions): AsyncGenerator<EntryPage, void, undefined> {
  const merge = new MergeCursor(options.sources);
  try {
    await merge.open();
    for (;;) {
      const page = new PageBuilder();
      const filled = fill(page, merge, options);
      if (isPending(filled)) await filled;
      if (page.count === 0) return;
      yield page.finish();
    }
  } finally {
    options.release();
  }
}

/** Adds entries until the page is full or the range ends. */
function fill(page: PageBuilder, merge: MergeCursor, options: ScanOptions): MaybePromise<void> {
  const { end, nowMs, pageEntriesMax, pageBytes } = options;
  while (merge.valid && page.count < pageEntriesMax && page.bytes < pageBytes) {
    const at = merge.at;
    if (end !== undefined && compareRanges(at.bytes, at.keyStart, at.keyEnd, end, 0, end.length) >= 0) return undefined;
    if (!at.isTombstone && (at.expiresAtMs === 0 || at.expiresAtMs > nowMs)) page.add(at);
    const moved = merge.next();
    if (isPending(moved)) return moved.then(() => fill(page, merge, options));
  }
  return undefined;
}

class PageBuilder {
  count = 0;
  readonly #keys = new ByteWriter(1024);
  readonly #values = new ByteWriter(4096);
  readonly #keyEnds: number[] = [0];
  readonly #valueEnds: number[] = [0];

  get bytes(): number {
    return this.#keys.position + this.#values.position;
  }

  add(at: Cursor): void {
    this.#keys.raw(at.bytes.subarray(at.keyStart, at.keyEnd));
    this.#values.raw(at.bytes.subarray(at.valueStart, at.valueEnd));
    this.#keyEnds.push(this.#keys.position);
    this.#valueEnds.push(this.#values.position);
    this.count++;
  }

  finish(): EntryPage {
    const { count } = this;
    const present = new Uint8Array(count).fill(1);
    return {
      keys: { count, bytes: this.#keys.written(), offsets: Uint32Array.from(this.#keyEnds) },
      values: { count, bytes: this.#values.written(), offsets: Uint32Array.from(this.#valueEnds), present },
    };
  }
}
