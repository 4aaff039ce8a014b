import type { Clock, Random, Timer } from '@millrace/kernel';
import type { CacheDisk } from './cache-disk.ts';
import type { CacheLink, FileReads } from './cache-link.ts';
import { type CachedFile, copyName } from './cached-file.ts';
import { CopyThrough } from './copy-through.ts';
import type { CachedReads, FileCache, FileThrough } from './file-cache.ts';
import { OpenCopies } from './open-copies.ts';

export interface DiskFilesOptions {
  readonly disk: CacheDisk;
  readonly link: CacheLink;
  readonly clock: Clock;
  readonly random: Random;
  /** Files are read through once, as by a compaction: their reads tell nothing of what will be read again. */
  readonly scans?: boolean;
}

const reportEveryMs = 200;
const openMax = 64;

type Reads = { -readonly [K in keyof FileReads]: FileReads[K] };

/** One thread's use of a disk cache: reads copies, writes them through, and reports what was read. */
export class DiskFiles implements FileCache {
  readonly #options: DiskFilesOptions;
  readonly #copies: OpenCopies;
  #reads = new Map<string, Reads>();
  #timer: Timer | undefined;
  #closed = false;

  constructor(options: DiskFilesOptions) {
    this.#options = options;
    this.#copies = new OpenCopies(options.disk, openMax);
  }

  open(file: CachedFile): CachedReads {
    const name = copyName(file);
    if (name === undefined) return { read: () => Promise.resolve(undefined) };
    const copy = { name, sizeBytes: file.sizeBytes };
    return {
      read: async (offset, length) => {
        // An error of the disk is a miss: the remote file is there.
        const answer = await this.#copies.read(copy, offset, length).catch(() => 'gone' as const);
        const bytes = typeof answer === 'string' ? undefined : answer;
        if (answer === 'damaged') this.#options.link.notify({ kind: 'damaged', name });
        this.#count(name, file, bytes !== undefined, length);
        return bytes;
      },
    };
  }

  create(): FileThrough {
    const { disk, link, clock, random } = this.#options;
    return new CopyThrough({ disk, link, clock, ticket: random.hex(8) });
  }

  forget(files: ReadonlyArray<Omit<CachedFile, 'path'>>): void {
    const names = files.map(copyName).filter((name) => name !== undefined);
    if (names.length > 0) this.#options.link.notify({ kind: 'forgotten', names });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#timer?.cancel();
    this.#report();
    this.#copies.close();
    this.#options.link.close();
  }

  #count(name: string, file: CachedFile, isHit: boolean, bytes: number): void {
    let reads = this.#reads.get(name);
    if (reads === undefined) {
      reads = { file, hits: 0, hitBytes: 0, misses: 0, missBytes: 0 };
      this.#reads.set(name, reads);
    }
    if (isHit) {
      reads.hits++;
      reads.hitBytes += bytes;
    } else {
      reads.misses++;
      reads.missBytes += bytes;
    }
    if (this.#closed) return;
    this.#timer ??= this.#options.clock.schedule(reportEveryMs, () => {
      this.#timer = undefined;
      this.#report();
    });
  }

  #report(): void {
    if (this.#reads.size === 0) return;
    const reads = [...this.#reads.values()];
    this.#reads = new Map();
    this.#options.link.notify({ kind: 'reads', reads, areScans: this.#options.scans === true });
  }
}
