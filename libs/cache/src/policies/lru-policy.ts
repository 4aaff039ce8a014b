import { MissedFiles } from './missed-files.ts';
import type { CachePolicy, PolicyFile } from './policy.ts';

/** Misses that may wait to be loaded. */
const missesMax = 64;

/** Loads every file that a read misses, and lets the one go that was not used for the longest time. */
export class LruPolicy implements CachePolicy {
  readonly name = 'lru';
  /** In order of last use. */
  readonly #cached = new Set<string>();
  readonly #missed = new MissedFiles(missesMax);

  added({ id }: PolicyFile): void {
    this.#missed.remove(id);
    this.#cached.delete(id);
    this.#cached.add(id);
  }

  removed(id: string): void {
    this.#cached.delete(id);
  }

  accessed(file: PolicyFile): void {
    if (this.#cached.delete(file.id)) this.#cached.add(file.id);
    else this.#missed.add(file);
  }

  evict(): string | undefined {
    for (const id of this.#cached) {
      this.#cached.delete(id);
      return id;
    }
    return undefined;
  }

  wanted(): readonly PolicyFile[] {
    return this.#missed.take();
  }
}
