import RocksDB from 'rocksdb-native';
import { batchRows, type Data, keyBytes } from './data.ts';
import { type Engine, together } from './engine.ts';

const mib = 1024 * 1024;

/**
 * RocksDB by its best binding for Node. It has no synchronous lookups, its log cannot be switched off (it is not forced to
 * the disk), and its block cache has RocksDB's default size of 32 MiB, with the system's page cache behind it.
 */
export async function openRocksDb(directory: string): Promise<Engine> {
  const db = new RocksDB(directory, { writeBufferSize: 16 * mib, maxWriteBufferNumber: 4 });
  await db.ready();
  return new RocksDbEngine(db);
}

class RocksDbEngine implements Engine {
  readonly #db: RocksDB;

  constructor(db: RocksDB) {
    this.#db = db;
  }

  async fill(data: Data): Promise<void> {
    const row = keyBytes + data.valueBytes;
    for (let start = 0; start < data.keys; start += batchRows) {
      const count = Math.min(batchRows, data.keys - start);
      const bytes = Buffer.allocUnsafeSlow(count * row);
      const batch = this.#db.write({ capacity: batchRows, autoDestroy: true });
      for (let i = 0; i < count; i++) {
        data.writeRow(data.order[start + i] as number, bytes, i * row);
        batch.tryPut(bytes.subarray(i * row, i * row + keyBytes), bytes.subarray(i * row + keyBytes, (i + 1) * row));
      }
      await batch.flush();
    }
    await this.#db.flush();
  }

  async settle(): Promise<void> {
    const isBusy = async (): Promise<boolean> => {
      const counts = ['rocksdb.compaction-pending', 'rocksdb.num-running-compactions', 'rocksdb.num-running-flushes'];
      const values = await Promise.all(counts.map((name) => this.#db.getProperty(name)));
      return values.some((value) => value !== '0');
    };
    while (await isBusy()) await new Promise((resolve) => setTimeout(resolve, 50));
  }

  async getEach(data: Data, count: number, below: number): Promise<void> {
    const get = async (i: number): Promise<void> => {
      const [key, bytes] = keyAt(data, i, below);
      const batch = this.#db.read({ capacity: 1, autoDestroy: true });
      const value = batch.get(bytes);
      void batch.flush();
      data.check(key, (await value) as Uint8Array, 0);
    };
    for (let i = 0; i < count; i += together) {
      await Promise.all(Array.from({ length: together }, (_, j) => get(i + j)));
    }
  }

  async getMany(data: Data, count: number, below: number): Promise<void> {
    for (let i = 0; i < count; i += together) {
      const batch = this.#db.read({ capacity: together, autoDestroy: true });
      const keys: number[] = [];
      const values = Array.from({ length: together }, (_, j) => {
        const [key, bytes] = keyAt(data, i + j, below);
        keys.push(key);
        return batch.get(bytes);
      });
      await batch.flush();
      for (const [j, value] of (await Promise.all(values)).entries())
        data.check(keys[j] as number, value as Uint8Array, 0);
    }
  }

  async scan(): Promise<number> {
    let rows = 0;
    for await (const { value } of this.#db.iterator({}, { capacity: 1024 })) rows += value.length > 0 ? 1 : 0;
    return rows;
  }

  close(): Promise<void> {
    return this.#db.close({ force: true });
  }
}

function keyAt(data: Data, i: number, below: number): [number, Uint8Array] {
  const key = (data.order[i % data.keys] as number) % below;
  const bytes = new Uint8Array(keyBytes);
  data.writeKey(key, bytes, 0);
  return [key, bytes];
}
