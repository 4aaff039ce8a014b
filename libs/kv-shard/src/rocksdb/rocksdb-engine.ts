import { mkdir } from 'node:fs/promises';
import RocksDB from 'rocksdb-native';
import type {
  Engine,
  EngineCheckpoint,
  EngineDb,
  EngineEntry,
  EngineRange,
  EngineStats,
  EngineView,
  EngineWrite,
} from '../engine/engine.ts';
import { linkCheckpoint, linkDatabase } from './hard-links.ts';

export interface RocksDbOptions {
  /** Size of one memtable. A database has two at most. */
  readonly memtableBytes: number;
}

/** RocksDB by the prebuilt binding rocksdb-native. Its calls run on the thread pool of libuv (`UV_THREADPOOL_SIZE`). */
export function rocksDbEngine({ memtableBytes }: RocksDbOptions): Engine {
  return {
    name: 'rocksdb',
    async open(directory) {
      await mkdir(directory, { recursive: true });
      const db = new RocksDB(directory, {
        writeBufferSize: memtableBytes,
        maxWriteBufferNumber: 2,
        maxBackgroundJobs: 2,
        // What is not in a checkpoint is lost with a table by contract.
        avoidFlushDuringShutdown: true,
        skipStatsUpdateOnOpen: true,
      });
      await db.ready();
      return new RocksDbDatabase(db, directory);
    },
    link: linkDatabase,
  };
}

class RocksDbDatabase implements EngineDb {
  readonly #db: RocksDB;
  readonly #directory: string;
  readonly #views = new Set<RocksDbView>();

  constructor(db: RocksDB, directory: string) {
    this.#db = db;
    this.#directory = directory;
  }

  async write(writes: readonly EngineWrite[]): Promise<void> {
    if (writes.length === 0) return;
    const batch = this.#db.write({ capacity: writes.length, autoDestroy: true });
    for (const { key, value } of writes) {
      if (value === undefined) batch.tryDelete(key);
      else batch.tryPut(key, value);
    }
    await batch.flush();
  }

  async deleteRange(start: Uint8Array, end: Uint8Array): Promise<void> {
    const batch = this.#db.write({ capacity: 1, autoDestroy: true });
    batch.tryDeleteRange(start, end);
    await batch.flush();
  }

  view(): EngineView {
    const view = new RocksDbView(this.#db.snapshot(), () => this.#views.delete(view));
    this.#views.add(view);
    return view;
  }

  async checkpoint(directory: string): Promise<EngineCheckpoint> {
    await this.#db.flush();
    await mkdir(directory, { recursive: true });
    return { files: await linkCheckpoint(this.#directory, directory) };
  }

  async stats(): Promise<EngineStats> {
    const property = async (name: string): Promise<number> => Number((await this.#db.getProperty(name)) ?? 0);
    const [entriesEstimate, memtables, readers, cached] = await Promise.all([
      property('rocksdb.estimate-num-keys'),
      property('rocksdb.cur-size-all-mem-tables'),
      property('rocksdb.estimate-table-readers-mem'),
      property('rocksdb.block-cache-usage'),
    ]);
    return { entriesEstimate, bytesInMemory: (memtables ?? 0) + (readers ?? 0) + (cached ?? 0) };
  }

  async close(): Promise<void> {
    for (const view of this.#views) view.release();
    await this.#db.close({ force: true });
  }
}

class RocksDbView implements EngineView {
  readonly #session: RocksDB;
  readonly #onRelease: () => void;
  readonly #iterators = new Set<{ destroy(): void }>();
  #released = false;

  constructor(session: RocksDB, onRelease: () => void) {
    this.#session = session;
    this.#onRelease = onRelease;
  }

  async get(keys: readonly Uint8Array[]): Promise<(Uint8Array | undefined)[]> {
    const batch = this.#session.read({ capacity: keys.length, autoDestroy: true });
    const values = Promise.all(keys.map((key) => batch.get(key)));
    // One of the two rejects with the cause, the other says that there was one.
    const flushed = batch.flush();
    flushed.catch(() => undefined);
    return (await values).map((value) => value ?? undefined);
  }

  async *scan({ start, end }: EngineRange, pageEntries: number): AsyncGenerator<EngineEntry[]> {
    const range = end === undefined ? { gte: start } : { gte: start, lt: end };
    const iterator = this.#session.iterator(range, { capacity: Math.min(pageEntries, 256) });
    this.#iterators.add(iterator);
    try {
      let page: EngineEntry[] = [];
      for await (const entry of iterator) {
        page.push(entry);
        if (page.length < pageEntries) continue;
        yield page;
        page = [];
      }
      if (page.length > 0) yield page;
    } finally {
      this.#iterators.delete(iterator);
      iterator.destroy();
    }
  }

  release(): void {
    if (this.#released) return;
    this.#released = true;
    for (const iterator of this.#iterators) iterator.destroy();
    this.#onRelease();
    void this.#session.close();
  }
}
