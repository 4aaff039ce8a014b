import type { CachedFile } from './cached-file.ts';

/** What the readers and writers of remote, immutable files see of a cache before them. Nothing here rejects. */
export interface FileCache {
  /** Call once for each file that is opened. */
  open(file: CachedFile): CachedReads;
  /** For a file that is being made. */
  create(): FileThrough;
  /** Files that nobody reads again. */
  forget(files: ReadonlyArray<Omit<CachedFile, 'path'>>): void;
  /** Idempotent. */
  close(): void;
}

export interface CachedReads {
  /** `[offset, offset + length)`, which lies within the file; undefined when it has to be read where it is. */
  read(offset: number, length: number): Promise<Uint8Array | undefined>;
}

/** Takes the bytes of a file as they are written. */
export interface FileThrough {
  /** The bytes are the caller's again once it has resolved. */
  append(bytes: Uint8Array): Promise<void>;
  /** The file exists: the copy may be read. */
  seal(file: CachedFile): Promise<void>;
  /** The file is not made after all. */
  abort(): Promise<void>;
}

/** Where there is no cache. */
export const noFileCache: FileCache = {
  open: () => ({ read: () => Promise.resolve(undefined) }),
  create: () => ({ append: () => Promise.resolve(), seal: () => Promise.resolve(), abort: () => Promise.resolve() }),
  forget: () => undefined,
  close: () => undefined,
};
