import { openDfs } from '@millrace/dfs';
import { systemClock as clock, systemRandom as random } from '@millrace/kernel';
import { BlockCache, defaultLsmLimits, LsmTable, type ValueRef, WorkerExecutor } from '@millrace/lsm';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import { type FileStore, openJobStorage } from '@millrace/ufs';
import { batchRows, type Data, keyBytes } from './data.ts';
import { type Engine, together } from './engine.ts';

const mib = 1024 * 1024;

/** Opens the files of a table on `dfs`; also what the thread that builds tables calls. */
export async function openBackgroundFiles(config: unknown): Promise<{ files: FileStore; close(): Promise<void> }> {
  const dfs = await openDfs(config as string, { clock, random, telemetry, setting: 'bench' });
  const storage = openJobStorage({ dfs, jobId: 'bench', generation: 1, clock, random, telemetry });
  return {
    files: storage.files,
    close: async () => {
      await storage.close();
      await dfs.close();
    },
  };
}

/** The LSM as it is embedded in a slot: lookups on this thread, files built on another. */
export async function openLsm(directory: string): Promise<Engine> {
  const uri = `file://${directory}?fsync=false`;
  const opened = await openBackgroundFiles(uri);
  const { files } = opened;
  const executor = new WorkerExecutor({
    files: { specifier: import.meta.url, config: uri },
    clock,
    closeTimeoutMs: 1000,
  });
  const cache = new BlockCache({ bytesMax: 32 * mib });
  const limits = { ...defaultLsmLimits, memtableBytes: 16 * mib };
  const table = new LsmTable({ files, executor, cache, clock, telemetry, limits });
  return new LsmEngine(table, async () => {
    await table.close();
    await executor.close();
    await opened.close();
  });
}

class LsmEngine implements Engine {
  readonly #table: LsmTable;
  readonly #close: () => Promise<void>;

  constructor(table: LsmTable, close: () => Promise<void>) {
    this.#table = table;
    this.#close = close;
  }

  async fill(data: Data): Promise<void> {
    const row = keyBytes + data.valueBytes;
    const bytes = Buffer.allocUnsafeSlow(batchRows * row);
    for (let start = 0; start < data.keys; start += batchRows) {
      const count = Math.min(batchRows, data.keys - start);
      for (let i = 0; i < count; i++) {
        const at = i * row;
        data.writeRow(data.order[start + i] as number, bytes, at);
        this.#table.put(bytes, at, at + keyBytes, at + keyBytes, at + row, 0);
      }
      await this.#table.admit();
    }
    await this.#table.snapshot();
  }

  settle(): Promise<void> {
    return this.#table.compacted();
  }

  async getEach(data: Data, count: number, below: number): Promise<void> {
    const key = new Uint8Array(keyBytes);
    const into: ValueRef = { bytes: key, start: 0, end: 0 };
    for (let i = 0; i < count; i++) {
      const wanted = (data.order[i % data.keys] as number) % below;
      data.writeKey(wanted, key, 0);
      const answer = this.#table.get(key, 0, keyBytes, into);
      if (answer === 'found') data.check(wanted, into.bytes, into.start);
      else await this.#getOne(data, wanted, key);
    }
  }

  async getMany(data: Data, count: number, below: number): Promise<void> {
    for (let i = 0; i < count; i += together) {
      const bytes = new Uint8Array(together * keyBytes);
      const offsets = Uint32Array.from({ length: together + 1 }, (_, j) => j * keyBytes);
      for (let j = 0; j < together; j++) {
        data.writeKey((data.order[(i + j) % data.keys] as number) % below, bytes, j * keyBytes);
      }
      const values = await this.#table.multiGet({ count: together, bytes, offsets });
      for (let j = 0; j < together; j++) {
        if (values.present[j] !== 1) throw new Error('a key is missing');
        data.check((data.order[(i + j) % data.keys] as number) % below, values.bytes, values.offsets[j] as number);
      }
    }
  }

  async scan(): Promise<number> {
    let rows = 0;
    for await (const { values } of this.#table.scan({ start: new Uint8Array() })) rows += values.count;
    return rows;
  }

  close(): Promise<void> {
    return this.#close();
  }

  async #getOne(data: Data, wanted: number, key: Uint8Array): Promise<void> {
    const values = await this.#table.multiGet({ count: 1, bytes: key, offsets: Uint32Array.of(0, keyBytes) });
    if (values.present[0] !== 1) throw new Error(`key ${wanted} is missing`);
    data.check(wanted, values.bytes, 0);
  }
}
