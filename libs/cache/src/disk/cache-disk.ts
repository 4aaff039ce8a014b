/** A directory of the local disk as the cache uses it. Errors are those of the system. */
export interface CacheDisk {
  /** What was published, with the time of its last use. */
  list(): Promise<readonly DiskEntry[]>;
  /** Removes what writers of earlier lives left. */
  clearTemporary(): Promise<void>;
  /** Bytes of the disk that are free. */
  freeBytes(): Promise<number>;
  /** A new file under a name that nobody reads. */
  create(temporary: string): Promise<DiskWriter>;
  /** Gives a written file its name, at once. */
  publish(temporary: string, name: string): Promise<void>;
  removeTemporary(temporary: string): Promise<void>;
  /** Gives the bytes back at once, also while somebody has the file open: his reads come to its end early. */
  remove(name: string): Promise<void>;
  open(name: string): Promise<DiskReader | undefined>;
  /** Notes the use of a file, for `list` of a later life. */
  touch(name: string, nowMs: number): Promise<void>;
}

export interface DiskEntry {
  readonly name: string;
  readonly bytes: number;
  readonly usedMs: number;
}

export interface DiskWriter {
  append(bytes: Uint8Array): Promise<void>;
  /** Idempotent. */
  close(): Promise<void>;
}

export interface DiskReader {
  readonly bytes: number;
  /** Fewer bytes than asked for only at the end of the file. */
  read(offset: number, length: number): Promise<Uint8Array>;
  close(): void;
}

/** No space, no quota. */
export function isFull(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return code === 'ENOSPC' || code === 'EDQUOT';
}
