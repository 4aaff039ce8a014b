import { access, type FileHandle, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { OutputFile, OutputFiles } from './output-files.ts';

/** A local directory; made when the first file is. */
export class LocalFiles implements OutputFiles {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async list(): Promise<readonly string[]> {
    return (await orMissing(readdir(this.#directory))) ?? [];
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
    // The rename itself is durable only when the directory is.
    const directory = await open(this.#directory, 'r');
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
    return 'done';
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
