import { compareBytes } from '@millrace/kernel';
import { packedItem, packKeys, packValues, type ScanPage } from '@millrace/state';

interface Cursor {
  readonly pages: AsyncIterator<ScanPage>;
  page: ScanPage | undefined;
  at: number;
}

/** Scans of disjoint keys as one, in order of the keys, in pages of at most `pageEntriesMax`. */
export async function* mergePages(
  scans: readonly AsyncIterable<ScanPage>[],
  pageEntriesMax: number,
): AsyncGenerator<ScanPage> {
  const cursors: Cursor[] = scans.map((scan) => ({ pages: scan[Symbol.asyncIterator](), page: undefined, at: 0 }));
  try {
    await Promise.all(cursors.map(advance));
    let keys: Uint8Array[] = [];
    let values: Uint8Array[] = [];
    for (;;) {
      const next = lowest(cursors);
      if (next !== undefined) {
        const page = next.page as ScanPage;
        keys.push(packedItem(page.keys, next.at));
        values.push(packedItem(page.values, next.at));
        next.at++;
        if (next.at === page.keys.count) await advance(next);
      }
      if (keys.length > 0 && (next === undefined || keys.length === pageEntriesMax)) {
        yield { keys: packKeys(keys), values: packValues(values) };
        keys = [];
        values = [];
      }
      if (next === undefined) return;
    }
  } finally {
    await Promise.all(cursors.map(async ({ pages }) => pages.return?.()));
  }
}

async function advance(cursor: Cursor): Promise<void> {
  const { value, done } = await cursor.pages.next();
  cursor.page = done === true ? undefined : value;
  cursor.at = 0;
}

function lowest(cursors: readonly Cursor[]): Cursor | undefined {
  let best: Cursor | undefined;
  for (const cursor of cursors) {
    if (cursor.page === undefined) continue;
    if (best === undefined || compareBytes(headOf(cursor), headOf(best)) < 0) best = cursor;
  }
  return best;
}

function headOf({ page, at }: Cursor): Uint8Array {
  return packedItem((page as ScanPage).keys, at);
}
