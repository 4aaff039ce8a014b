import type { TraceContext } from '@millrace/telemetry';

/** One object or file under a prefix. */
export interface DfsEntry {
  /** Full path, as `put` took it. */
  readonly path: string;
  readonly sizeBytes: number;
  /** The store's own time of last change, epoch milliseconds. */
  readonly modifiedMs: number;
}

/** Bytes appended in order, each call awaited before the next; nothing is visible to any reader before `close` resolves, and then all of it is. */
export interface DfsWriter {
  /** The bytes are the caller's again once it has resolved. */
  append(bytes: Uint8Array): Promise<void>;
  /** Publishes the file. */
  close(): Promise<void>;
  /** Gives up; nothing remains visible. Idempotent. */
  abort(): Promise<void>;
}

/**
 * A file system or object store. Paths are relative to the root that the driver was opened with, separated by `/`,
 * without leading slash, `.` or `..` (`checkPath`); a path is never both a file and the directory of another. Every
 * method rejects with a MillraceError: kind `retry` for what may pass, `setup` for what an operator has to mend.
 * Drivers retry inside; a rejection means that the retries are used up, and that a write may or may not have happened.
 * `parent` is the span that a request's own span hangs under; without it none is recorded.
 */
export interface Dfs {
  /** The URI the driver was opened with, for messages. */
  readonly uri: string;
  /** Whole and at once: a reader sees the old bytes or the new ones. Overwrites. */
  put(path: string, bytes: Uint8Array, parent?: TraceContext): Promise<void>;
  /** True when this call created the file; false when it exists. One winner among any number of callers. */
  putIfAbsent(path: string, bytes: Uint8Array, parent?: TraceContext): Promise<boolean>;
  /**
   * `length` bytes from `offset`, fewer only at the end of the file. Rejects with `dfs-not-found`. `into` is memory that the
   * caller lends, `length` bytes or more: a driver may read into it and answer with its beginning, or take no notice.
   * Memory that the answer does not lie in is lost to the caller: an attempt that was given up may still write to it.
   */
  read(path: string, offset: number, length: number, parent?: TraceContext, into?: Uint8Array): Promise<Uint8Array>;
  /** The whole file, or undefined when there is none. */
  readAll(path: string, parent?: TraceContext): Promise<Uint8Array | undefined>;
  stat(path: string): Promise<DfsEntry | undefined>;
  /**
   * Every file whose path starts with `prefix`, in order of path (code units). Lazy and consistent: what was there
   * when the call began and is not removed meanwhile is listed; what comes or goes meanwhile may or may not be.
   */
  list(prefix: string): AsyncIterable<DfsEntry>;
  /** Idempotent: a missing file is no error. */
  remove(path: string): Promise<void>;
  /** Replaces, as `put` does, when the writer closes. */
  createWriter(path: string, parent?: TraceContext): Promise<DfsWriter>;
  close(): Promise<void>;
}
