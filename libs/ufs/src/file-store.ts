import type { TraceContext } from '@millrace/telemetry';
import type { FileDelegation } from './file-id.ts';

/** An immutable, sealed physical file. Plain JSON: manifests and checkpoint records carry it. */
export interface FileRef {
  /** Unique for ever; names the physical file inside its job's namespace. */
  readonly id: string;
  readonly sizeBytes: number;
  /** CRC-32 of the whole content. */
  readonly crc32: number;
  /** Id of the job in whose namespace the file lies, after a fork; absent: the job that names it. */
  readonly home?: string;
}

/** Written once, then sealed. Until then no reader anywhere sees the file. */
export interface FileWriter {
  readonly id: string;
  /** The bytes are the caller's again once it has resolved. */
  append(bytes: Uint8Array): Promise<void>;
  seal(): Promise<FileRef>;
  /** Gives up; leaves nothing behind. Idempotent. */
  abort(): Promise<void>;
}

/** Positional reads: there is no cursor, so where the bytes come from is decided for each read. */
export interface FileReader {
  readonly file: FileRef;
  /** `into` as in {@link Dfs.read}: memory that the caller lends, and loses if the answer does not lie in it. */
  read(offset: number, length: number, parent?: TraceContext, into?: Uint8Array): Promise<Uint8Array>;
}

/** What a state store sees of the unified file system: the immutable files of one job, and those that it forked. */
export interface FileStore {
  create(parent?: TraceContext): Promise<FileWriter>;
  open(file: FileRef): FileReader;
  /**
   * Hands files to the reaper. Only for files that this process made and that were never part of a snapshot:
   * whatever a snapshot names is left to the job's retention (DESIGN §8).
   */
  discard(files: readonly FileRef[]): void;
}

/**
 * Files that other processes make on behalf of this one. What is made under a delegation belongs to who gave it: it may be
 * discarded here like any file of its own, and the sweep spares it as long as it spares those.
 */
export interface DelegatingFileStore extends FileStore {
  delegate(): FileDelegation;
  /** Whether the file was made here or by a delegate of this store. */
  made(file: FileRef): boolean;
  /**
   * Removes what was made under the delegation, but for `kept`; resolves to how many files that were. Who still works
   * under it may go on and leave files behind: call again later, or leave them to the sweep.
   */
  discardDelegated(delegation: FileDelegation, kept: readonly FileRef[]): Promise<number>;
}
