import type { Random } from '@millrace/kernel';
import type { CacheDisk, DiskEntry, DiskReader, DiskWriter } from '../cache-disk.ts';

interface FakeFile {
  bytes: Buffer;
  usedMs: number;
}

/** A disk in memory that looks at its bytes after every step, takes its time, and fails when told to. */
export class FakeDisk implements CacheDisk {
  /** What must not have been. */
  readonly wrong: string[] = [];
  readonly files = new Map<string, FakeFile>();
  readonly temporary = new Map<string, FakeFile>();
  /** Bytes of others on the same disk. */
  othersBytes = 0;
  /** A share of writes that fail as if there were no space. */
  fullShare = 0;
  /** A share of removals that fail. */
  stuckShare = 0;
  highestBytes = 0;
  readonly #capacity: number;
  readonly #bytesMax: number;
  readonly #reserveBytes: number;
  readonly #random: Random;

  constructor(options: { capacity: number; bytesMax: number; reserveBytes: number; random: Random }) {
    this.#capacity = options.capacity;
    this.#bytesMax = options.bytesMax;
    this.#reserveBytes = options.reserveBytes;
    this.#random = options.random;
  }

  get bytes(): number {
    let sum = 0;
    for (const file of this.files.values()) sum += file.bytes.length;
    for (const file of this.temporary.values()) sum += file.bytes.length;
    return sum;
  }

  get free(): number {
    return this.#capacity - this.othersBytes - this.bytes;
  }

  async list(): Promise<readonly DiskEntry[]> {
    await this.#pause();
    return [...this.files].map(([name, { bytes, usedMs }]) => ({ name, bytes: bytes.length, usedMs }));
  }

  async clearTemporary(): Promise<void> {
    await this.#pause();
    this.temporary.clear();
  }

  async freeBytes(): Promise<number> {
    await this.#pause();
    const { free } = this;
    await this.#pause();
    return free;
  }

  async create(name: string): Promise<DiskWriter> {
    await this.#pause();
    const file: FakeFile = { bytes: Buffer.alloc(0), usedMs: 0 };
    this.temporary.set(name, file);
    return {
      append: async (bytes) => {
        await this.#pause();
        if (this.#random.below(1000) < this.fullShare * 1000) throw errno('ENOSPC');
        file.bytes = Buffer.concat([file.bytes, bytes]);
        this.#written(`append to ${name}`);
      },
      close: () => this.#pause(),
    };
  }

  async publish(temporary: string, name: string): Promise<void> {
    await this.#pause();
    const file = this.temporary.get(temporary);
    if (file === undefined) throw errno('ENOENT');
    this.temporary.delete(temporary);
    this.files.set(name, file);
  }

  async removeTemporary(name: string): Promise<void> {
    await this.#pause();
    this.temporary.delete(name);
  }

  async remove(name: string): Promise<void> {
    await this.#pause();
    if (this.#random.below(1000) < this.stuckShare * 1000) throw errno('EACCES');
    const file = this.files.get(name);
    if (file === undefined) return;
    file.bytes = Buffer.alloc(0); // also for those who have it open
    await this.#pause();
    if (this.files.get(name) === file) this.files.delete(name);
  }

  async open(name: string): Promise<DiskReader | undefined> {
    await this.#pause();
    const file = this.files.get(name);
    if (file === undefined) return undefined;
    return {
      bytes: file.bytes.length,
      read: async (offset, length) => {
        await this.#pause();
        return new Uint8Array(file.bytes.subarray(offset, offset + length));
      },
      close: () => undefined,
    };
  }

  async touch(name: string, nowMs: number): Promise<void> {
    await this.#pause();
    const file = this.files.get(name);
    if (file !== undefined) file.usedMs = nowMs;
  }

  #written(what: string): void {
    this.highestBytes = Math.max(this.highestBytes, this.bytes);
    if (this.bytes > this.#bytesMax) this.wrong.push(`${what}: ${this.bytes} bytes of ${this.#bytesMax}`);
    if (this.free < this.#reserveBytes) this.wrong.push(`${what}: ${this.free} bytes are free`);
  }

  /** A few turns of the others. */
  async #pause(): Promise<void> {
    for (let turns = this.#random.below(4); turns > 0; turns--) await Promise.resolve();
    if (this.#random.below(8) === 0) await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

function errno(code: string): Error {
  return Object.assign(new Error(code), { code });
}
