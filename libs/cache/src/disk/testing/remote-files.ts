import { crc32 } from 'node:zlib';
import { type Random, SeededRandom } from '@millrace/kernel';
import type { CachedFile } from '../cached-file.ts';
import type { FileCache } from '../file-cache.ts';

/** Immutable files somewhere else, and the reading and writing of them through a cache as the unified file system does it. */
export class RemoteFiles {
  readonly files: CachedFile[] = [];
  readonly contents = new Map<string, Buffer>();
  /** Reads of the remote files, by users and by the cache. */
  reads = 0;
  /** Paths that cannot be read. */
  readonly broken = new Set<string>();
  #nextId = 0;

  /** A file that is there already. */
  add(sizeBytes: number): CachedFile {
    const id = `file-${this.#nextId++}`;
    const content = Buffer.alloc(sizeBytes);
    const random = new SeededRandom(this.#nextId);
    for (let i = 0; i < sizeBytes; i += 7) content[i] = random.below(256);
    const file = { id, path: `job/files/${id}`, sizeBytes, crc32: crc32(content) };
    this.files.push(file);
    this.contents.set(file.path, content);
    return file;
  }

  readonly fetch = (path: string, offset: number, length: number): Promise<Uint8Array> => {
    this.reads++;
    const content = this.contents.get(path);
    if (content === undefined || this.broken.has(path)) return Promise.reject(new Error(`${path} cannot be read`));
    return Promise.resolve(new Uint8Array(content.subarray(offset, offset + length)));
  };

  /** Makes a file, its copy written through. */
  async write(cache: FileCache, sizeBytes: number, appendBytes: number): Promise<CachedFile> {
    const file = this.add(sizeBytes);
    const through = cache.create();
    const content = this.contents.get(file.path) as Buffer;
    for (let at = 0; at < sizeBytes; at += appendBytes) await through.append(content.subarray(at, at + appendBytes));
    await through.seal(file);
    return file;
  }

  /** Reads a range as a reader of files does, and says whether it is right and where it came from. */
  async read(cache: FileCache, file: CachedFile, random: Random): Promise<{ right: boolean; cached: boolean }> {
    const offset = random.below(file.sizeBytes);
    const length = 1 + random.below(Math.min(40_000, file.sizeBytes - offset));
    const cached = await cache.open(file).read(offset, length);
    const bytes = cached ?? (await this.fetch(file.path, offset, length));
    const content = this.contents.get(file.path) as Buffer;
    return { right: content.subarray(offset, offset + length).equals(bytes), cached: cached !== undefined };
  }
}
