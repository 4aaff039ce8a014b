import { assert, type Clock } from '@millrace/kernel';
import type { Dfs, DfsEntry, DfsWriter } from './dfs.ts';
import { checkPath, checkPrefix } from './path.ts';
import { checkRange, notFound } from './ranges.ts';

interface Stored {
  readonly bytes: Uint8Array;
  readonly modifiedMs: number;
}

/** Files in the memory of this process; gone with it. For tests and for jobs that need no recovery. */
export class MemoryDfs implements Dfs {
  readonly uri = 'memory:';
  readonly #clock: Clock;
  readonly #files = new Map<string, Stored>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async put(path: string, bytes: Uint8Array): Promise<void> {
    checkPath(path);
    this.#store(path, bytes.slice());
  }

  async putIfAbsent(path: string, bytes: Uint8Array): Promise<boolean> {
    checkPath(path);
    if (this.#files.has(path)) return false;
    this.#store(path, bytes.slice());
    return true;
  }

  async read(path: string, offset: number, length: number): Promise<Uint8Array> {
    checkPath(path);
    checkRange(path, offset, length);
    const file = this.#files.get(path);
    if (file === undefined) throw notFound(this.uri, path);
    return file.bytes.slice(offset, offset + length);
  }

  async readAll(path: string): Promise<Uint8Array | undefined> {
    checkPath(path);
    return this.#files.get(path)?.bytes.slice();
  }

  async stat(path: string): Promise<DfsEntry | undefined> {
    checkPath(path);
    return this.#entry(path);
  }

  async *list(prefix: string): AsyncGenerator<DfsEntry> {
    checkPrefix(prefix);
    const paths = [...this.#files.keys()].filter((path) => path.startsWith(prefix)).sort();
    for (const path of paths) {
      const entry = this.#entry(path);
      if (entry !== undefined) yield entry;
    }
  }

  async remove(path: string): Promise<void> {
    checkPath(path);
    this.#files.delete(path);
  }

  async createWriter(path: string): Promise<DfsWriter> {
    checkPath(path);
    return new MemoryWriter((bytes) => this.#store(path, bytes));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #store(path: string, bytes: Uint8Array): void {
    this.#files.set(path, { bytes, modifiedMs: this.#clock.nowMs() });
  }

  #entry(path: string): DfsEntry | undefined {
    const file = this.#files.get(path);
    return file && { path, sizeBytes: file.bytes.length, modifiedMs: file.modifiedMs };
  }
}

class MemoryWriter implements DfsWriter {
  readonly #publish: (bytes: Uint8Array) => void;
  readonly #chunks: Uint8Array[] = [];
  #state: 'open' | 'closed' | 'aborted' = 'open';

  constructor(publish: (bytes: Uint8Array) => void) {
    this.#publish = publish;
  }

  async append(bytes: Uint8Array): Promise<void> {
    assert(this.#state === 'open', `append to a writer that is ${this.#state}`);
    this.#chunks.push(bytes.slice());
  }

  async close(): Promise<void> {
    assert(this.#state === 'open', `close of a writer that is ${this.#state}`);
    this.#state = 'closed';
    this.#publish(Uint8Array.from(Buffer.concat(this.#chunks)));
  }

  async abort(): Promise<void> {
    if (this.#state !== 'open') return;
    this.#state = 'aborted';
    this.#chunks.length = 0;
  }
}
