import { MillraceError } from '@millrace/kernel';
import type { Holder, Holders } from '@millrace/ufs';

const filesMax = 200_000;

/** Holders never change, so what was read once is kept, up to a number of files in all. */
export class HolderCache {
  readonly #holders: Holders;
  readonly #kept = new Map<string, Holder>();
  #files = 0;

  constructor(holders: Holders) {
    this.#holders = holders;
  }

  /** As {@link find}; rejects with `ufs-missing` when there is none. */
  async read(path: string): Promise<Holder> {
    const holder = await this.find(path);
    if (holder !== undefined) return holder;
    throw new MillraceError('ufs-missing', `holder ${path} does not exist`, { details: { path } });
  }

  async find(path: string): Promise<Holder | undefined> {
    const kept = this.#kept.get(path);
    if (kept !== undefined) return kept;
    const read = await this.#holders.find(path);
    if (read === undefined) return undefined;
    const holder: Holder = { files: read.files, generation: read.generation, value: null };
    this.#kept.set(path, holder);
    this.#files += 1 + holder.files.length;
    for (const [oldest, { files }] of this.#kept) {
      if (this.#files <= filesMax) break;
      this.#kept.delete(oldest);
      this.#files -= 1 + files.length;
    }
    return holder;
  }
}
