/** The part of rocksdb-native that is used here; the package has no types of its own. */
declare module 'rocksdb-native' {
  interface ReadBatch {
    get(key: Uint8Array): Promise<Uint8Array | null>;
    flush(): Promise<void>;
    destroy(): void;
  }

  interface WriteBatch {
    tryPut(key: Uint8Array, value: Uint8Array): void;
    tryDelete(key: Uint8Array): void;
    tryDeleteRange(start: Uint8Array, end: Uint8Array): void;
    flush(): Promise<void>;
    destroy(): void;
  }

  interface Iterator extends AsyncIterable<{ readonly key: Uint8Array; readonly value: Uint8Array }> {
    destroy(): void;
  }

  interface Options {
    readonly writeBufferSize?: number;
    readonly maxWriteBufferNumber?: number;
    readonly maxBackgroundJobs?: number;
    readonly maxOpenFiles?: number;
    readonly tableBlockSize?: number;
    readonly avoidFlushDuringShutdown?: boolean;
    readonly skipStatsUpdateOnOpen?: boolean;
  }

  export default class RocksDB {
    constructor(path: string, options?: Options);
    ready(): Promise<void>;
    /** A session that sees the data as of this call. Close it. */
    snapshot(): RocksDB;
    read(options?: { readonly capacity?: number; readonly autoDestroy?: boolean }): ReadBatch;
    write(options?: { readonly capacity?: number; readonly autoDestroy?: boolean }): WriteBatch;
    iterator(
      range: { readonly gte?: Uint8Array; readonly lt?: Uint8Array },
      options?: { readonly capacity?: number },
    ): Iterator;
    flush(): Promise<void>;
    getProperty(name: string): Promise<string | null>;
    close(options?: { readonly force?: boolean }): Promise<void>;
  }
}
