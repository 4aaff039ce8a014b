import type { DfsEntry } from '../dfs.ts';
import { fromHdfs, toHdfs } from './names.ts';
import type { HdfsStatus, WebHdfs } from './web-hdfs.ts';

interface Item {
  /** The name; for a directory with `/` behind it, which is what makes the order of names that of whole paths. */
  readonly key: string;
  readonly status: HdfsStatus;
}

/** Every file under `root` whose path starts with `prefix`, in order of code units of the whole path, depth first. */
export async function* listHdfs(web: WebHdfs, root: string, prefix: string, hidden: string): AsyncGenerator<DfsEntry> {
  const cut = prefix.lastIndexOf('/') + 1;
  const directory = prefix.slice(0, cut);
  yield* walk({ web, root, hidden }, directory, prefix.slice(cut));
}

interface Walk {
  readonly web: WebHdfs;
  readonly root: string;
  /** Path of a directory that is left out. */
  readonly hidden: string;
}

/** `directory` is empty or ends with `/`. */
async function* walk(from: Walk, directory: string, namePrefix: string): AsyncGenerator<DfsEntry> {
  const { web, root, hidden } = from;
  for (const { key, status } of await itemsOf(web, root + toHdfs(`/${directory}`))) {
    const path = directory + key;
    if (!key.startsWith(namePrefix) || path === hidden) continue;
    if (status.type === 'DIRECTORY') yield* walk(from, path, '');
    else yield { path, sizeBytes: status.length, modifiedMs: status.modificationTime };
  }
}

async function itemsOf(web: WebHdfs, absolutePath: string): Promise<Item[]> {
  const items: Item[] = [];
  for (let after = ''; ; ) {
    const { statuses, isLast } = await web.listPage(absolutePath.replace(/\/$/, ''), after);
    for (const status of statuses) {
      // A listing of a file names the file by nothing.
      if (status.pathSuffix === '') continue;
      const name = fromHdfs(status.pathSuffix);
      items.push({ key: status.type === 'DIRECTORY' ? `${name}/` : name, status });
    }
    const last = statuses.at(-1)?.pathSuffix;
    if (isLast || last === undefined) break;
    after = last;
  }
  return items.sort((a, b) => (a.key < b.key ? -1 : 1));
}
