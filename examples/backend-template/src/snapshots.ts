/** Snapshots as files of the service's directory. Replace this with what your store has for snapshots. */
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError } from '@millrace/kernel';

export interface Entry {
  /** Base 64. */
  readonly key: string;
  readonly value: string;
  readonly expiresAtMs: number;
}

export class Snapshots {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = join(directory, 'snapshots');
  }

  /** Whole or not at all: written beside its place, then renamed. */
  async put(job: string, id: string, entries: readonly Entry[]): Promise<void> {
    await mkdir(this.#jobDirectory(job), { recursive: true });
    const path = this.#path(job, id);
    await writeFile(`${path}.partial`, JSON.stringify(entries), { flush: true });
    await rename(`${path}.partial`, path);
  }

  async get(job: string, id: string): Promise<readonly Entry[]> {
    try {
      return JSON.parse(await readFile(this.#path(job, id), 'utf8')) as Entry[];
    } catch (cause) {
      throw new MillraceError('kv-snapshot-missing', `snapshot ${id} of ${job} is not in ${this.#directory}`, {
        cause,
      });
    }
  }

  async jobs(): Promise<readonly string[]> {
    return (await names(this.#directory)).map(decodeURIComponent);
  }

  async list(job: string): Promise<readonly string[]> {
    const all = await names(this.#jobDirectory(job));
    return all.filter((name) => !name.endsWith('.partial')).map(decodeURIComponent);
  }

  async remove(job: string, id: string): Promise<void> {
    await rm(this.#path(job, id), { force: true });
  }

  #jobDirectory(job: string): string {
    return join(this.#directory, encodeURIComponent(job));
  }

  #path(job: string, id: string): string {
    return join(this.#jobDirectory(job), encodeURIComponent(id));
  }
}

async function names(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
