/** What a file sink needs of the place it writes to. */
export interface OutputFiles {
  /** Names of the files in the directory; empty when it does not exist. */
  list(): Promise<readonly string[]>;
  /** The text of a small file; undefined when it is not there. */
  read(name: string): Promise<string | undefined>;
  /** Starts a file, empty. */
  create(name: string): Promise<OutputFile>;
  /** Atomic; durable when it resolves. Replaces `to`. `missing` when there is no `from`. */
  rename(from: string, to: string): Promise<'done' | 'missing'>;
  /**
   * As `rename`, but never replaces: `taken` when another file has the name `to`. A crash may leave both names for the one
   * file; a repeated call makes it good. Whatever the answer, what the directory shows then is durable.
   */
  move(from: string, to: string): Promise<'done' | 'missing' | 'taken'>;
  exists(name: string): Promise<boolean>;
  /** No error when it is not there. */
  remove(name: string): Promise<void>;
}

export interface OutputFile {
  append(bytes: Uint8Array): Promise<void>;
  /** Everything appended is durable. */
  sync(): Promise<void>;
  close(): Promise<void>;
}
