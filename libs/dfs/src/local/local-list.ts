import { type Dirent, promises as fs } from 'node:fs';
import { join } from 'node:path';
import type { DfsEntry } from '../dfs.ts';
import { errnoOf } from './local-errors.ts';

/** Files looked at together, so that a long listing does not wait for one disk access after the other. */
const statBatch = 64;

interface Item {
  /** The name; for a directory with `/` behind it, which is what makes the order of names that of whole paths. */
  readonly key: string;
  readonly isDirectory: boolean;
}

/**
 * Every file under `root` whose path starts with `prefix`, in order of code units of the whole path. Depth first; a
 * directory sorts as its name followed by `/`, so `a.b` comes before `a/c`, and `a/c` before `a0`. What vanishes
 * meanwhile is left out.
 */
export async function* listLocal(root: string, prefix: string, hidden: string): AsyncGenerator<DfsEntry> {
  const cut = prefix.lastIndexOf('/') + 1;
  const directory = prefix.slice(0, cut);
  yield* walk(root, directory, prefix.slice(cut), directory === '' ? hidden : undefined);
}

/** `directory` is empty or ends with `/`. */
async function* walk(
  root: string,
  directory: string,
  namePrefix: string,
  hidden: string | undefined,
): AsyncGenerator<DfsEntry> {
  const items = await itemsOf(join(root, directory));
  const wanted = items.filter((item) => item.key.startsWith(namePrefix) && item.key !== hidden);
  for (let at = 0; at < wanted.length; ) {
    const item = wanted[at] as Item;
    if (item.isDirectory) {
      yield* walk(root, directory + item.key, '', undefined);
      at++;
      continue;
    }
    let end = at;
    while (end < wanted.length && end - at < statBatch && !(wanted[end] as Item).isDirectory) end++;
    const paths = wanted.slice(at, end).map((file) => directory + file.key);
    for (const entry of await Promise.all(paths.map((path) => statFile(root, path)))) {
      if (entry !== undefined) yield entry;
    }
    at = end;
  }
}

/** Size and time of a file; undefined when there is none at `path`. */
export async function statFile(root: string, path: string): Promise<DfsEntry | undefined> {
  try {
    const stats = await fs.stat(join(root, path));
    return stats.isFile() ? { path, sizeBytes: stats.size, modifiedMs: stats.mtimeMs } : undefined;
  } catch (error) {
    if (isAbsence(error)) return undefined;
    throw error;
  }
}

async function itemsOf(absolutePath: string): Promise<Item[]> {
  let found: Dirent[];
  try {
    found = await fs.readdir(absolutePath, { withFileTypes: true });
  } catch (error) {
    if (isAbsence(error)) return [];
    throw error;
  }
  return found
    .map((dirent) => ({
      key: dirent.isDirectory() ? `${dirent.name}/` : dirent.name,
      isDirectory: dirent.isDirectory(),
    }))
    .sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** True for errors that say there is no such file. */
export function isAbsence(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === 'ENOENT' || errno === 'ENOTDIR';
}
