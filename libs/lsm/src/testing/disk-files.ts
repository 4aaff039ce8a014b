/** Files in a directory, for tests of the background thread and benchmarks: no durability, no fencing. */
import { randomUUID } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { FileReader, FileRef, FileStore, FileWriter } from '@millrace/ufs';
import type { BackgroundFiles } from '../background/worker-protocol.ts';

export class DiskFileStore implements FileStore {
  readonly #directory: string;
  readonly #removals = new Set<Promise<void>>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  async create(): Promise<FileWriter> {
    const id = randomUUID();
    const path = join(this.#directory, id);
    const file = await open(path, 'wx');
    let sizeBytes = 0;
    let crc = 0;
    return {
      id,
      append: async (bytes) => {
        await file.write(bytes);
        sizeBytes += bytes.length;
        crc = crc32(bytes, crc);
      },
      seal: async () => {
        await file.close();
        return { id, sizeBytes, crc32: crc };
      },
      abort: async () => {
        await file.close();
        await rm(path, { force: true });
      },
    };
  }

  open(file: FileRef): FileReader {
    return { file, read: (offset, length) => readAt(join(this.#directory, file.id), offset, length) };
  }

  discard(files: readonly FileRef[]): void {
    for (const { id } of files) {
      const removal = rm(join(this.#directory, id), { force: true }).finally(() => this.#removals.delete(removal));
      this.#removals.add(removal);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#removals);
  }
}

/** The module export that a background thread looks for; `config` is the directory. */
export async function openBackgroundFiles(config: unknown): Promise<BackgroundFiles> {
  const files = new DiskFileStore(config as string);
  return { files, close: () => files.close() };
}

async function readAt(path: string, offset: number, length: number): Promise<Uint8Array> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(new Uint8Array(length), 0, length, offset);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
