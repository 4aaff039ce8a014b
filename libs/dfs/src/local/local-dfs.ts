import { promises as fs } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Clock, MillraceError, type Random } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import type { Dfs, DfsEntry, DfsWriter } from '../dfs.ts';
import { checkPath, checkPrefix } from '../path.ts';
import { checkRange, notFound } from '../ranges.ts';
import { errnoOf, localError } from './local-errors.ts';
import { LocalHandles } from './local-handles.ts';
import { isAbsence, listLocal, statFile } from './local-list.ts';
import { LocalWriter, writeFully } from './local-writer.ts';

export interface LocalDfsOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Force bytes and names to the disk before a write is confirmed: survives power loss. Default true. */
  readonly fsync?: boolean;
  /** Files kept open for reading. Default 64. */
  readonly handlesMax?: number;
}

/** Unpublished bytes live here, on the file system of the root, so that rename and link are atomic. */
const temporaryDirectory = '.millrace-tmp';
/** A temporary file of this age belongs to a process that is gone. */
const temporaryAgeMaxMs = 24 * 3600 * 1000;
/** How often a write makes its directory anew when removals of others take it away meanwhile. */
const publishAttemptsMax = 100;

/**
 * A directory as a Dfs, shared by any number of processes of one machine (or of one POSIX network file system).
 *
 * Bytes are written to a temporary name and published in one step: by rename(2), which replaces, or by link(2), which
 * fails when the name exists. So a crash at any point leaves the old file, the new file, or a temporary file that no
 * reader sees and that a later `open` clears. Directories come with the first file and go with the last; a removal
 * that takes a directory away under a concurrent write makes that write create it again.
 */
export class LocalDfs implements Dfs {
  readonly uri: string;
  readonly #root: string;
  readonly #random: Random;
  readonly #fsync: boolean;
  readonly #handles: LocalHandles;

  private constructor(root: string, options: LocalDfsOptions) {
    this.uri = pathToFileURL(root).href;
    this.#root = root;
    this.#random = options.random;
    this.#fsync = options.fsync ?? true;
    this.#handles = new LocalHandles(options.handlesMax ?? 64);
  }

  /** Makes the directory when it is missing and clears what crashed writers left a day ago or longer. */
  static async open(directory: string, options: LocalDfsOptions): Promise<LocalDfs> {
    const root = resolve(directory);
    const temporary = join(root, temporaryDirectory);
    try {
      await fs.mkdir(temporary, { recursive: true });
      await clearTemporary(temporary, options.clock.nowMs() - temporaryAgeMaxMs);
    } catch (error) {
      throw localError(error, 'open', root);
    }
    return new LocalDfs(root, options);
  }

  async put(path: string, bytes: Uint8Array): Promise<void> {
    const target = this.#resolve(path);
    const temporary = await this.#writeTemporary(bytes);
    await this.#publish(temporary, target, 'put', () => fs.rename(temporary, target));
  }

  async putIfAbsent(path: string, bytes: Uint8Array): Promise<boolean> {
    const target = this.#resolve(path);
    // The common loser is spared the write; the link below decides.
    if (await this.#guard('look at', target, () => statFile(this.#root, path))) return false;
    const temporary = await this.#writeTemporary(bytes);
    try {
      return await this.#publish(temporary, target, 'put', async () => {
        await fs.link(temporary, target);
        return true;
      });
    } catch (error) {
      if (error instanceof MillraceError && error.details.errno === 'EEXIST' && !(await isDirectory(target))) {
        return false;
      }
      throw error;
    } finally {
      await fs.rm(temporary, { force: true }).catch(() => undefined);
    }
  }

  async read(
    path: string,
    offset: number,
    length: number,
    _parent?: TraceContext,
    into?: Uint8Array,
  ): Promise<Uint8Array> {
    checkRange(path, offset, length);
    const target = this.#resolve(path);
    const bytes = await this.#guard('read', target, () => this.#handles.read(target, { offset, length, into }));
    if (bytes === undefined) throw notFound(this.uri, path);
    return bytes;
  }

  async readAll(path: string): Promise<Uint8Array | undefined> {
    const target = this.#resolve(path);
    try {
      const buffer = await fs.readFile(target);
      // A plain array: `slice` of a Buffer shares memory, which callers do not expect.
      return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.length);
    } catch (error) {
      if (isAbsence(error) || errnoOf(error) === 'EISDIR') return undefined;
      throw localError(error, 'read', target);
    }
  }

  async stat(path: string): Promise<DfsEntry | undefined> {
    const target = this.#resolve(path);
    return this.#guard('look at', target, () => statFile(this.#root, path));
  }

  async *list(prefix: string): AsyncGenerator<DfsEntry> {
    checkPrefix(prefix);
    try {
      yield* listLocal(this.#root, prefix, `${temporaryDirectory}/`);
    } catch (error) {
      throw localError(error, 'list', join(this.#root, prefix));
    }
  }

  async remove(path: string): Promise<void> {
    const target = this.#resolve(path);
    this.#handles.forget(target);
    try {
      await fs.unlink(target);
    } catch (error) {
      if (isAbsence(error) || errnoOf(error) === 'EISDIR') return;
      // What unlink(2) of a directory says on systems other than Linux.
      if (errnoOf(error) === 'EPERM' && (await isDirectory(target))) return;
      throw localError(error, 'remove', target);
    }
    await this.#prune(dirname(target));
  }

  async createWriter(path: string): Promise<DfsWriter> {
    const target = this.#resolve(path);
    const temporary = this.#temporaryPath();
    return this.#guard('create', temporary, async () => {
      const handle = await this.#openTemporary(temporary);
      const publish = (): Promise<void> => this.#publish(temporary, target, 'put', () => fs.rename(temporary, target));
      return new LocalWriter(handle, { temporary, publish, fsync: this.#fsync });
    });
  }

  close(): Promise<void> {
    this.#handles.close();
    return Promise.resolve();
  }

  async #writeTemporary(bytes: Uint8Array): Promise<string> {
    const temporary = this.#temporaryPath();
    try {
      const handle = await this.#openTemporary(temporary);
      try {
        await writeFully(handle, bytes, 0);
        if (this.#fsync) await handle.sync();
      } finally {
        await handle.close();
      }
      return temporary;
    } catch (error) {
      await fs.rm(temporary, { force: true }).catch(() => undefined);
      throw localError(error, 'write', temporary);
    }
  }

  async #openTemporary(temporary: string): Promise<fs.FileHandle> {
    try {
      return await fs.open(temporary, 'wx');
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error;
      await fs.mkdir(dirname(temporary), { recursive: true });
      return await fs.open(temporary, 'wx');
    }
  }

  /** Runs `step` with the target's directory in place, anew when a removal takes the directory away meanwhile. */
  async #publish<T>(temporary: string, target: string, operation: string, step: () => Promise<T>): Promise<T> {
    const directory = dirname(target);
    try {
      for (let attempt = 1; ; attempt++) {
        try {
          const result = await step();
          if (this.#fsync) await syncDirectory(directory);
          return result;
        } catch (error) {
          if (errnoOf(error) !== 'ENOENT' || attempt === publishAttemptsMax) throw error;
        }
        // Fails with ENOENT when a parent goes while its child is being made: the next turn makes it.
        await fs.mkdir(directory, { recursive: true }).catch((error: unknown) => {
          if (errnoOf(error) !== 'ENOENT') throw error;
        });
      }
    } catch (error) {
      await fs.rm(temporary, { force: true }).catch(() => undefined);
      throw localError(error, operation, target);
    }
  }

  /** Removes directories that have become empty. rmdir(2) takes only empty ones, so a concurrent file is safe. */
  async #prune(directory: string): Promise<void> {
    for (let at = directory; at.length > this.#root.length; at = dirname(at)) {
      try {
        await fs.rmdir(at);
      } catch {
        return;
      }
    }
  }

  #resolve(path: string): string {
    checkPath(path);
    if (path === temporaryDirectory || path.startsWith(`${temporaryDirectory}/`)) {
      throw new MillraceError(
        'dfs-bad-path',
        `path ${path} is not allowed: ${temporaryDirectory} is for Millrace’s own use`,
      );
    }
    return join(this.#root, path);
  }

  #temporaryPath(): string {
    return join(this.#root, temporaryDirectory, this.#random.hex(12));
  }

  async #guard<T>(operation: string, target: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw localError(error, operation, target);
    }
  }
}

async function isDirectory(target: string): Promise<boolean> {
  return await fs.stat(target).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}

/** A new name survives power loss once its directory is on the disk. A directory that is gone has no names to keep. */
async function syncDirectory(directory: string): Promise<void> {
  const handle = await fs.open(directory, 'r').catch((error: unknown) => {
    if (isAbsence(error)) return undefined;
    throw error;
  });
  if (handle === undefined) return;
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function clearTemporary(temporary: string, olderThanMs: number): Promise<void> {
  for (const name of await fs.readdir(temporary)) {
    const path = join(temporary, name);
    const stats = await fs.stat(path).catch(() => undefined);
    if (stats !== undefined && stats.mtimeMs < olderThanMs) await fs.rm(path, { force: true }).catch(() => undefined);
  }
}
