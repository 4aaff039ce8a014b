import { crc32 } from 'node:zlib';
import { type CachedReads, type FileCache, type FileThrough, noFileCache } from '@millrace/cache';
import type { Dfs, DfsWriter } from '@millrace/dfs';
import { assert, type Clock, MillraceError, type Random } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import { corrupt } from './envelope.ts';
import { DelegatedFileIds, type FileDelegation, type FileIdSource, FileIds } from './file-id.ts';
import type { DelegatingFileStore, FileReader, FileRef, FileWriter } from './file-store.ts';
import { missing } from './holders.ts';
import type { JobNamespace } from './namespace.ts';
import type { Reaper } from './reaper.ts';

export interface JobFilesOptions {
  readonly dfs: Dfs;
  readonly namespace: JobNamespace;
  /** The attempt on whose behalf files are made. */
  readonly generation: number;
  readonly reaper: Reaper;
  readonly clock: Clock;
  readonly random: Random;
  /** Whose files these are, when they are made on behalf of another process; default: this one's own. */
  readonly delegation?: FileDelegation | undefined;
  /** Copies of files, nearer than the file system: read first, written through. Default: none. */
  readonly cache?: FileCache | undefined;
}

/**
 * The immutable files of one job, `<job>/files/<id>`, as one process of one attempt sees them. A file exists from the
 * moment it is sealed, whole, for every reader. A crash before `seal` leaves nothing; a crash after it and before a
 * holder names the file leaves an orphan, which the sweep takes once the generation is over.
 */
export class JobFiles implements DelegatingFileStore {
  readonly #options: JobFilesOptions;
  readonly #own: FileIds;
  readonly #ids: FileIdSource;
  readonly #cache: FileCache;

  constructor(options: JobFilesOptions) {
    const { generation, random, delegation } = options;
    this.#options = options;
    this.#cache = options.cache ?? noFileCache;
    this.#own = new FileIds(generation, random);
    this.#ids = delegation === undefined ? this.#own : new DelegatedFileIds(delegation, random);
  }

  async create(parent?: TraceContext): Promise<FileWriter> {
    const { dfs, namespace, clock } = this.#options;
    const id = this.#ids.mint(clock.nowMs());
    const path = namespace.filePath(id);
    return new JobFileWriter({ id, path, writer: await dfs.createWriter(path, parent), through: this.#cache.create() });
  }

  open(file: FileRef): FileReader {
    const path = this.#options.namespace.pathOf(file);
    return new JobFileReader(file, { dfs: this.#options.dfs, path, cached: this.#cache.open({ ...file, path }) });
  }

  discard(files: readonly FileRef[]): void {
    for (const { id } of files) {
      assert(this.#ids.minted(id), `discard of file ${id}, which was not made here: only its job's retention may`);
    }
    this.#cache.forget(files);
    this.#options.reaper.discard(files.map((file) => this.#options.namespace.filePath(file.id)));
  }

  delegate(): FileDelegation {
    return this.#own.delegate(this.#options.clock.nowMs());
  }

  made({ id }: FileRef): boolean {
    return this.#ids.minted(id);
  }

  async discardDelegated({ prefix }: FileDelegation, kept: readonly FileRef[]): Promise<number> {
    const { dfs, namespace, reaper } = this.#options;
    assert(this.#own.minted(`${prefix}0`), `delegation ${prefix} was not given here`);
    const keep = new Set(kept.map((file) => namespace.filePath(file.id)));
    const gone: string[] = [];
    for await (const { path } of dfs.list(namespace.filePath(prefix))) if (!keep.has(path)) gone.push(path);
    return (await reaper.removeNow(gone)).removed.length;
  }
}

interface NewFile {
  readonly id: string;
  readonly path: string;
  readonly writer: DfsWriter;
  /** The copy; whatever becomes of it, it never fails the file. */
  readonly through: FileThrough;
}

class JobFileWriter implements FileWriter {
  readonly id: string;
  readonly #file: NewFile;
  #sizeBytes = 0;
  #crc32 = 0;

  constructor(file: NewFile) {
    this.id = file.id;
    this.#file = file;
  }

  async append(bytes: Uint8Array): Promise<void> {
    // Before the write: the bytes are the caller's again as soon as the promise resolves.
    this.#crc32 = crc32(bytes, this.#crc32);
    this.#sizeBytes += bytes.length;
    const copied = this.#file.through.append(bytes);
    try {
      await this.#file.writer.append(bytes);
    } finally {
      await copied;
    }
  }

  async seal(): Promise<FileRef> {
    const { id, path, writer, through } = this.#file;
    await writer.close();
    const file = { id, sizeBytes: this.#sizeBytes, crc32: this.#crc32 };
    await through.seal({ ...file, path });
    return file;
  }

  async abort(): Promise<void> {
    await this.#file.through.abort();
    await this.#file.writer.abort();
  }
}

interface FilePlace {
  readonly dfs: Dfs;
  readonly path: string;
  readonly cached: CachedReads;
}

class JobFileReader implements FileReader {
  readonly file: FileRef;
  readonly #place: FilePlace;

  constructor(file: FileRef, place: FilePlace) {
    this.file = file;
    this.#place = place;
  }

  /** Fewer bytes than asked for only at the end of the file. Where the bytes come from is decided anew at each read. */
  async read(offset: number, length: number, parent?: TraceContext, into?: Uint8Array): Promise<Uint8Array> {
    const wanted = Math.max(0, Math.min(length, this.file.sizeBytes - offset));
    const { dfs, path, cached } = this.#place;
    const copied = await cached.read(offset, wanted);
    if (copied !== undefined) return copied;
    const bytes = await dfs.read(path, offset, wanted, parent, into).catch((error: unknown) => {
      throw error instanceof MillraceError && error.code === 'dfs-not-found' ? missing(path, 'file') : error;
    });
    if (bytes.length === wanted) return bytes;
    throw corrupt(path, `at ${offset} there are ${bytes.length} of ${wanted} bytes`);
  }
}
