/** Code units from here on sort otherwise by code units than by bytes of UTF-8: surrogates before U+E000 … U+FFFF. */
const firstHigh = 0xd800;

/**
 * From the order of UTF-8 bytes, in which S3 lists, to that of code units, which the port promises. The two differ
 * only among paths that agree up to a character from U+E000 on; those stand together at the end of what begins with
 * the same characters, so each such group is held, sorted and given on. Paths without such characters, which is all
 * that Millrace makes, pass as they come.
 */
export async function* byCodeUnits<T extends { readonly path: string }>(entries: AsyncIterable<T>): AsyncGenerator<T> {
  let group: T[] = [];
  let start: string | undefined;
  for await (const entry of entries) {
    if (start !== undefined && !(entry.path.startsWith(start) && entry.path.charCodeAt(start.length) >= firstHigh)) {
      yield* inOrder(group);
      group = [];
      start = undefined;
    }
    start ??= beforeHigh(entry.path);
    if (start === undefined) yield entry;
    else group.push(entry);
  }
  yield* inOrder(group);
}

function inOrder<T extends { readonly path: string }>(group: T[]): T[] {
  return group.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** What stands before the first such character; undefined when there is none. */
function beforeHigh(path: string): string | undefined {
  for (let i = 0; i < path.length; i++) {
    if (path.charCodeAt(i) >= firstHigh) return path.slice(0, i);
  }
  return undefined;
}
