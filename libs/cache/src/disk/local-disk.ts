import { close, promises as fs, fstat, open, read, write } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { CacheDisk, DiskEntry, DiskReader, DiskWriter } from './cache-disk.ts';

const openFile = promisify(open);
const statOpen = promisify(fstat);
const closeFile = promisify(close);

const filesDirectory = 'files';
const temporaryDirectory = 'tmp';

/** Two directories below `root`: what is published, and what is being written. Nothing is forced to the disk: copies verify themselves. */
export class LocalDisk implements CacheDisk {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  /** Makes the directories. Throws what the system says. */
  async prepare(): Promise<void> {
    await fs.mkdir(join(this.#root, filesDirectory), { recursive: true });
    await fs.mkdir(join(this.#root, temporaryDirectory), { recursive: true });
  }

  async list(): Promise<readonly DiskEntry[]> {
    const entries: DiskEntry[] = [];
    for (const name of await fs.readdir(join(this.#root, filesDirectory))) {
      const { size, mtimeMs } = await fs.stat(this.#path(name));
      entries.push({ name, bytes: size, usedMs: mtimeMs });
    }
    return entries;
  }

  async clearTemporary(): Promise<void> {
    for (const name of await fs.readdir(join(this.#root, temporaryDirectory))) await this.removeTemporary(name);
  }

  async freeBytes(): Promise<number> {
    const { bavail, bsize } = await fs.statfs(this.#root);
    return bavail * bsize;
  }

  async create(temporary: string): Promise<DiskWriter> {
    return new LocalDiskWriter(await openFile(this.#temporary(temporary), 'wx'));
  }

  publish(temporary: string, name: string): Promise<void> {
    return fs.rename(this.#temporary(temporary), this.#path(name));
  }

  removeTemporary(temporary: string): Promise<void> {
    return fs.rm(this.#temporary(temporary), { force: true });
  }

  async remove(name: string): Promise<void> {
    const path = this.#path(name);
    try {
      // The bytes of a file that is open would stay until it is closed.
      await fs.truncate(path);
      await fs.unlink(path);
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'ENOENT') throw error;
    }
  }

  async open(name: string): Promise<DiskReader | undefined> {
    let descriptor: number;
    try {
      descriptor = await openFile(this.#path(name), 'r');
    } catch (error) {
      if ((error as { code?: unknown }).code === 'ENOENT') return undefined;
      throw error;
    }
    const { size } = await statOpen(descriptor);
    return new LocalDiskReader(descriptor, size);
  }

  touch(name: string, nowMs: number): Promise<void> {
    return fs.utimes(this.#path(name), nowMs / 1000, nowMs / 1000);
  }

  #path(name: string): string {
    return join(this.#root, filesDirectory, name);
  }

  #temporary(name: string): string {
    return join(this.#root, temporaryDirectory, name);
  }
}

class LocalDiskWriter implements DiskWriter {
  readonly #descriptor: number;
  #position = 0;
  #closed = false;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  async append(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; ) at += await this.#write(bytes, at);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await closeFile(this.#descriptor);
  }

  #write(bytes: Uint8Array, at: number): Promise<number> {
    return new Promise((resolve, reject) => {
      write(this.#descriptor, bytes, at, bytes.length - at, this.#position, (error, written) => {
        if (error !== null) return reject(error);
        this.#position += written;
        resolve(written);
      });
    });
  }
}

class LocalDiskReader implements DiskReader {
  readonly bytes: number;
  readonly #descriptor: number;

  constructor(descriptor: number, bytes: number) {
    this.#descriptor = descriptor;
    this.bytes = bytes;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(length);
    let done = 0;
    while (done < length) {
      const count = await this.#read(bytes, done, offset + done);
      if (count === 0) break;
      done += count;
    }
    return done === length ? bytes : bytes.subarray(0, done);
  }

  close(): void {
    // A descriptor for reading has nothing to lose at its close.
    close(this.#descriptor, () => undefined);
  }

  #read(bytes: Uint8Array, at: number, position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      read(this.#descriptor, bytes, at, bytes.length - at, position, (error, count) => {
        if (error === null) resolve(count);
        else reject(error);
      });
    });
  }
}
