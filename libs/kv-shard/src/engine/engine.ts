/** A put, or without `value` a delete. */
export interface EngineWrite {
  readonly key: Uint8Array;
  readonly value: Uint8Array | undefined;
}

export interface EngineEntry {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

/** `[start, end)` in key order; without `end`, to the end. */
export interface EngineRange {
  readonly start: Uint8Array;
  readonly end?: Uint8Array | undefined;
}

/** The data of one database as of one moment. Whoever took it releases it. */
export interface EngineView {
  /** Values in the order of the keys. */
  get(keys: readonly Uint8Array[]): Promise<(Uint8Array | undefined)[]>;
  /** Entries in order, in pages of at most `pageEntries`, none of them empty. */
  scan(range: EngineRange, pageEntries: number): AsyncIterable<EngineEntry[]>;
  /** Idempotent. */
  release(): void;
}

export interface EngineStats {
  readonly entriesEstimate: number;
  readonly bytesInMemory: number;
}

/** Files of a checkpoint. */
export interface EngineCheckpoint {
  /** Names that identify a file's content for the life of the database, with sizes in bytes. */
  readonly files: ReadonlyMap<string, number>;
}

/** One embedded database in one directory. */
export interface EngineDb {
  /** Applies in order, all or nothing. The caller runs one write at a time. */
  write(writes: readonly EngineWrite[]): Promise<void>;
  /** Removes a range at a cost that does not follow its size. As {@link write}. */
  deleteRange(start: Uint8Array, end: Uint8Array): Promise<void>;
  /** Synchronous: every write that has resolved is in it, and none that begins later. */
  view(): EngineView;
  /**
   * Puts the data as of the call into `directory`, which does not exist yet, by links to immutable files: it can be opened by
   * {@link Engine.open}. The caller runs no write meanwhile.
   */
  checkpoint(directory: string): Promise<EngineCheckpoint>;
  stats(): Promise<EngineStats>;
  /** Releases views first. */
  close(): Promise<void>;
}

/** What a shard's data lies in: the small port that keeps the engine exchangeable. */
export interface Engine {
  readonly name: string;
  /** Opens the database in `directory`, an empty one when the directory does not exist. */
  open(directory: string): Promise<EngineDb>;
  /** Puts the files of a checkpoint into `directory`, which does not exist yet, by links: a database of its own. */
  link(checkpoint: string, directory: string): Promise<void>;
}
