import { access, type FileHandle, link, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { OutputFile, OutputFiles } from './output-files.ts';

/** What link(2) answers on file systems that have no hard links. */
const withoutLinks: ReadonlySet<string | undefined> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']);

/** A local directory; made when the first file is. */
export class LocalFiles implements OutputFiles {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async list(): Promise<readonly string[]> {
    return (await orMissing(readdir(this.#directory))) ?? [];
  }

  read(name: string): Promise<string | undefined> {
    return orMissing(readFile(join(this.#directory, name), 'utf8'));
  }

  async create(name: string): Promise<OutputFile> {
    await mkdir(this.#directory, { recursive: true });
    return new LocalFile(await open(join(this.#directory, name), 'w'));
  }

  async rename(from: string, to: string): Promise<'done' | 'missing'> {
    const renamed = await orMissing(
      rename(join(this.#directory, from), join(this.#directory, to)).then(() => 'done' as const),
    );
    if (renamed === undefined) return 'missing';
    await this.#sync();
    return 'done';
  }

  async move(from: string, to: string): Promise<'done' | 'missing' | 'taken'> {
    const moved = (await orMissing(this.#link(join(this.#directory, from), join(this.#directory, to)))) ?? 'missing';
    if (moved === 'done') await this.remove(from);
    await this.#sync();
    return moved;
  }

  async #link(from: string, to: string): Promise<'done' | 'taken'> {
    try {
      await link(from, to);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (withoutLinks.has(code)) {
        // The owner marker alone keeps others out then.
        if ((await orMissing(access(to).then(() => true))) === true) return 'taken';
        await rename(from, to);
        return 'done';
      }
      if (code !== 'EEXIST') throw error;
      // A crash after the link, or a network file system that repeated the call.
      const [one, other] = await Promise.all([stat(from), stat(to)]);
      if (one.ino !== other.ino || one.dev !== other.dev) return 'taken';
    }
    return 'done';
  }

  /** New and removed names are durable only when the directory is. */
  async #sync(): Promise<void> {
    const directory = await orMissing(open(this.#directory, 'r'));
    if (directory === undefined) return;
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  }

  async exists(name: string): Promise<boolean> {
    return (await orMissing(access(join(this.#directory, name)).then(() => true))) ?? false;
  }

  async remove(name: string): Promise<void> {
    await rm(join(this.#directory, name), { force: true });
  }
}

class LocalFile implements OutputFile {
  readonly #handle: FileHandle;

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  async append(bytes: Uint8Array): Promise<void> {
    await this.#handle.writeFile(bytes);
  }

  sync(): Promise<void> {
    return this.#handle.sync();
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}

async function orMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
