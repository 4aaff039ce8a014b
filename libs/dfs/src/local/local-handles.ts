import { type BigIntStats, close, fstatSync, open, read, statSync } from 'node:fs';
import { promisify } from 'node:util';
import { errnoOf } from './local-errors.ts';

const openFile = promisify(open);

interface Entry {
  /** A plain number: owned by this cache alone, and cheaper to read from than a FileHandle. */
  readonly descriptor: number;
  readonly inode: bigint;
  /** Files are never changed in place, so the size of the inode is for ever. */
  readonly sizeBytes: number;
  readers: number;
  /** Out of the cache: the last reader closes it. */
  retired: boolean;
}

/** What to read, and where to, when the caller lends memory of at least `length` bytes. */
interface LocalRange {
  readonly offset: number;
  readonly length: number;
  readonly into?: Uint8Array | undefined;
}

/** Reads between two looks for handles whose files were removed: those keep disk space. */
const purgeEvery = 256;

/**
 * Open handles of files that are read again and again: a read then costs one trip to the thread pool instead of four.
 * Before each use the name is looked up and must still mean the same inode, so a file that was replaced or removed, by
 * whichever process, is never read by its old handle. (An inode is not used again while a handle to it is open.) The look-up is
 * synchronous on purpose: the name was used a moment ago, so it answers from the kernel's cache in microseconds.
 */
export class LocalHandles {
  readonly #handlesMax: number;
  /** In order of last use. */
  readonly #entries = new Map<string, Entry>();
  #reads = 0;
  #closed = false;

  constructor(handlesMax: number) {
    this.#handlesMax = handlesMax;
  }

  /** Bytes of the file at `target`, fewer at its end; undefined when there is no file. Throws errors of the system. */
  async read(target: string, { offset, length, into }: LocalRange): Promise<Uint8Array | undefined> {
    if (++this.#reads % purgeEvery === 0) this.#purge();
    const entry = this.#current(target) ?? (await this.#open(target));
    if (entry === undefined) return undefined;
    entry.readers++;
    try {
      const wanted = Math.max(0, Math.min(length, entry.sizeBytes - offset));
      const bytes = into?.subarray(0, wanted) ?? new Uint8Array(wanted);
      let done = 0;
      while (done < bytes.length) {
        const bytesRead = await readSome(entry.descriptor, bytes, done, offset + done);
        if (bytesRead === 0) break;
        done += bytesRead;
      }
      return done === bytes.length ? bytes : bytes.subarray(0, done);
    } finally {
      entry.readers--;
      closeWhenUnused(entry);
    }
  }

  /** Drops the handle of a file that is being removed, so that its space is free at once. */
  forget(target: string): void {
    const entry = this.#entries.get(target);
    if (entry === undefined) return;
    this.#entries.delete(target);
    entry.retired = true;
    closeWhenUnused(entry);
  }

  close(): void {
    this.#closed = true;
    for (const target of this.#entries.keys()) this.forget(target);
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The cached handle, if the name still means its file. */
  #current(target: string): Entry | undefined {
    const entry = this.#entries.get(target);
    if (entry === undefined) return undefined;
    if (inodeOf(target) !== entry.inode) {
      this.forget(target);
      return undefined;
    }
    this.#entries.delete(target);
    this.#entries.set(target, entry);
    return entry;
  }

  async #open(target: string): Promise<Entry | undefined> {
    let descriptor: number;
    try {
      descriptor = await openFile(target, 'r');
    } catch (error) {
      const errno = errnoOf(error);
      if (errno === 'ENOENT' || errno === 'ENOTDIR') return undefined;
      throw error;
    }
    const entry = entryOf(descriptor);
    if (entry === undefined) return undefined;
    // Another read may have opened it meanwhile; the later one stays.
    this.forget(target);
    if (this.#closed) entry.retired = true;
    else this.#entries.set(target, entry);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > this.#handlesMax && oldest !== undefined) this.forget(oldest);
    return entry;
  }

  #purge(): void {
    for (const [target, entry] of this.#entries) {
      if (inodeOf(target) !== entry.inode) this.forget(target);
    }
  }
}

function inodeOf(target: string): bigint | undefined {
  try {
    return statSync(target, { bigint: true, throwIfNoEntry: false })?.ino;
  } catch {
    // Not to be told: the file is opened anew, and that says what is wrong.
    return undefined;
  }
}

/** Undefined, with the descriptor closed, for what is no file. */
function entryOf(descriptor: number): Entry | undefined {
  let stats: BigIntStats | undefined;
  try {
    stats = fstatSync(descriptor, { bigint: true });
  } finally {
    if (stats?.isFile() !== true) close(descriptor, () => undefined);
  }
  if (!stats.isFile()) return undefined;
  return { descriptor, inode: stats.ino, sizeBytes: Number(stats.size), readers: 0, retired: false };
}

/** Fills `bytes` from `start` with what is at `position`, as much as the system gives at once; 0 at the end. */
function readSome(descriptor: number, bytes: Uint8Array, start: number, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    read(descriptor, bytes, start, bytes.length - start, position, (error, bytesRead) => {
      if (error === null) resolve(bytesRead);
      else reject(error);
    });
  });
}

function closeWhenUnused(entry: Entry): void {
  // A descriptor for reading has nothing to lose at its close.
  if (entry.retired && entry.readers === 0) close(entry.descriptor, () => undefined);
}
