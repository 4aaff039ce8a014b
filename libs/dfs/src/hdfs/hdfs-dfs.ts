import { MillraceError } from '@millrace/kernel';
import type { Dfs, DfsEntry, DfsWriter } from '../dfs.ts';
import { checkPath, checkPrefix } from '../path.ts';
import { checkRange, notFound } from '../ranges.ts';
import { PartWriter } from '../remote/part-writer.ts';
import { Wire, type WireOptions } from '../remote/wire.ts';
import { listHdfs } from './hdfs-list.ts';
import { HdfsUpload } from './hdfs-upload.ts';
import type { HdfsSettings } from './hdfs-uri.ts';
import { toHdfs } from './names.ts';
import { WebHdfs } from './web-hdfs.ts';

/** Unpublished bytes live here, so that a rename gives them their name. */
const temporaryDirectory = '.millrace-tmp';
/** A temporary file of this age belongs to a process that is gone. */
const temporaryAgeMaxMs = 24 * 3600 * 1000;
/** How often a write makes its directory anew when removals of others take it away meanwhile. */
const publishAttemptsMax = 100;

/**
 * A directory of HDFS as a Dfs, over WebHDFS (HTTP to the name node and to data nodes).
 *
 * What the store gives, and the port needs: **a rename is atomic and, when it may not replace, has one winner**. HDFS
 * shows a file from its creation on, half written; so bytes are written to a temporary name and renamed, with
 * replacement (`put`, `createWriter`) or without (`putIfAbsent`). Listings and reads are of the name node's state, so
 * they show what was done before them. A temporary name is known to one call only: when a repeated rename finds it
 * gone, it was renamed by the first. Directories come with the first file and go with the last.
 *
 * Requests: `put` and `putIfAbsent` three (name node, data node, rename), and two more for the first file of a
 * directory; `read` two, and one when the file was read before (its data node is remembered); `stat` one; `remove`
 * two; a listing one per directory and thousand names.
 */
export class HdfsDfs implements Dfs {
  readonly uri: string;
  readonly wire: Wire;
  readonly #settings: HdfsSettings;
  readonly #web: WebHdfs;

  private constructor(uri: string, settings: HdfsSettings, options: WireOptions) {
    this.uri = uri;
    this.wire = new Wire(settings, options);
    this.#settings = settings;
    this.#web = new WebHdfs(settings, this.wire, options.clock);
  }

  /** Looks whether the name node answers, and clears what crashed writers left a day ago or longer. */
  static async open(uri: string, settings: HdfsSettings, options: WireOptions): Promise<HdfsDfs> {
    const dfs = new HdfsDfs(uri, settings, options);
    try {
      await dfs.wire.retried(`open ${uri}`, () => dfs.#clearTemporary(options.clock.nowMs() - temporaryAgeMaxMs));
      return dfs;
    } catch (error) {
      await dfs.close();
      throw error;
    }
  }

  async put(path: string, bytes: Uint8Array): Promise<void> {
    const target = this.#resolve(path);
    const temporary = this.#temporaryPath();
    await this.#web.create(temporary, bytes);
    await this.#publish(temporary, target, true);
  }

  async putIfAbsent(path: string, bytes: Uint8Array): Promise<boolean> {
    const target = this.#resolve(path);
    const temporary = this.#temporaryPath();
    await this.#web.create(temporary, bytes);
    if (await this.#publish(temporary, target, false)) return true;
    await this.#web.remove(temporary).catch(() => false);
    return false;
  }

  async read(path: string, offset: number, length: number): Promise<Uint8Array> {
    checkRange(path, offset, length);
    const target = this.#resolve(path);
    const bytes =
      length > 0 ? await this.#web.open(target, { offset, length }) : (await this.stat(path)) && new Uint8Array(0);
    if (bytes === undefined) throw notFound(this.uri, path);
    return bytes;
  }

  async readAll(path: string): Promise<Uint8Array | undefined> {
    return await this.#web.open(this.#resolve(path));
  }

  async stat(path: string): Promise<DfsEntry | undefined> {
    const status = await this.#web.status(this.#resolve(path));
    if (status?.type !== 'FILE') return undefined;
    return { path, sizeBytes: status.length, modifiedMs: status.modificationTime };
  }

  async *list(prefix: string): AsyncGenerator<DfsEntry> {
    checkPrefix(prefix);
    yield* listHdfs(this.#web, this.#settings.root, prefix, `${temporaryDirectory}/`);
  }

  async remove(path: string): Promise<void> {
    const target = this.#resolve(path);
    if (!(await this.#web.remove(target))) return;
    // Empty directories go; the name node refuses to remove one in which a file has come meanwhile.
    let parent = parentOf(target);
    while (parent.length > this.#settings.root.length && (await this.#web.remove(parent))) parent = parentOf(parent);
  }

  async createWriter(path: string): Promise<DfsWriter> {
    const target = this.#resolve(path);
    const temporary = this.#temporaryPath();
    const publish = async (): Promise<void> => {
      await this.#publish(temporary, target, true);
    };
    const { partBytes } = this.#settings;
    return new PartWriter(new HdfsUpload(this.#web, this.wire, { temporary, partBytes, publish }));
  }

  close(): Promise<void> {
    this.#web.close();
    return Promise.resolve();
  }

  /** Gives a temporary file its name, in a directory that is made when it is missing. False when the name is taken. */
  async #publish(temporary: string, target: string, isReplacing: boolean): Promise<boolean> {
    for (let turn = 1; turn <= publishAttemptsMax; turn++) {
      const outcome = await this.wire.retried(`rename ${target}`, async (attempt) => {
        const renamed = await this.#web.rename(temporary, target, isReplacing);
        if (renamed !== 'missing') return renamed;
        const isLeft = (await this.#web.status(temporary)) !== undefined;
        if (isLeft) return renamed;
        if (attempt > 1) return 'renamed'; // by the attempt whose answer was lost
        throw new MillraceError('dfs-not-found', `${temporary} was removed by somebody else`);
      });
      if (outcome !== 'missing') return outcome === 'renamed';
      await this.#web.makeDirectories(parentOf(target));
    }
    throw new MillraceError('dfs-unavailable', `the directory of ${target} is removed again and again`);
  }

  async #clearTemporary(olderThanMs: number): Promise<void> {
    const directory = `${this.#settings.root}/${temporaryDirectory}`;
    for (let after = ''; ; ) {
      const { statuses, isLast } = await this.#web.listPage(directory, after);
      const old = statuses.filter((status) => status.modificationTime < olderThanMs);
      for (const { pathSuffix } of old) await this.#web.remove(`${directory}/${pathSuffix}`);
      const last = statuses.at(-1)?.pathSuffix;
      if (isLast || last === undefined) return;
      after = last;
    }
  }

  #resolve(path: string): string {
    checkPath(path);
    if (`${path}/`.startsWith(`${temporaryDirectory}/`)) {
      throw new MillraceError(
        'dfs-bad-path',
        `path ${path} is not allowed: ${temporaryDirectory} is for Millrace’s own use`,
      );
    }
    return `${this.#settings.root}/${toHdfs(path)}`;
  }

  #temporaryPath(): string {
    return `${this.#settings.root}/${temporaryDirectory}/${this.wire.random.hex(12)}`;
  }
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}
