import { MissedFiles } from './missed-files.ts';
import type { CachePolicy, PolicyFile } from './policy.ts';

const missesMax = 64;
/** Of the cached bytes, what files on probation may take. */
const smallShare = 0.1;
const usesMax = 3;
/** Uses on probation that make a file stay. */
const usesToStay = 2;

interface Entry {
  readonly file: PolicyFile;
  uses: number;
}

/** First in, first out; with the bytes that it holds. */
class Fifo {
  readonly entries = new Map<string, Entry>();
  bytes = 0;

  push(entry: Entry): void {
    this.entries.set(entry.file.id, entry);
    this.bytes += entry.file.bytes;
  }

  remove(id: string): Entry | undefined {
    const entry = this.entries.get(id);
    if (entry === undefined) return undefined;
    this.entries.delete(id);
    this.bytes -= entry.file.bytes;
    return entry;
  }

  shift(): Entry | undefined {
    for (const id of this.entries.keys()) return this.remove(id);
    return undefined;
  }
}

/**
 * S3-FIFO (Yang et al., SOSP 2023), by bytes: new files are on probation in a small queue, those that are used again there
 * move to the main queue, those that are not leave at once but are remembered, and come back to the main queue. A file that
 * a read misses is loaded. Files that are read through once do not displace what is in use.
 */
export class S3FifoPolicy implements CachePolicy {
  readonly name = 's3-fifo';
  readonly #small = new Fifo();
  readonly #main = new Fifo();
  /** Files that left probation unused, as many bytes of them as there are cached. */
  readonly #ghosts = new Fifo();
  readonly #missed = new MissedFiles(missesMax);

  added(file: PolicyFile): void {
    this.removed(file.id);
    this.#missed.remove(file.id);
    const known = this.#ghosts.remove(file.id) !== undefined;
    (known ? this.#main : this.#small).push({ file, uses: 0 });
  }

  removed(id: string): void {
    if (this.#small.remove(id) === undefined) this.#main.remove(id);
  }

  accessed(file: PolicyFile, reads: number): void {
    const entry = this.#small.entries.get(file.id) ?? this.#main.entries.get(file.id);
    if (entry === undefined) this.#missed.add(file);
    else entry.uses = Math.min(usesMax, entry.uses + reads);
  }

  evict(): string | undefined {
    for (;;) {
      const total = this.#small.bytes + this.#main.bytes;
      const fromSmall = this.#small.bytes > total * smallShare || this.#main.entries.size === 0;
      const entry = (fromSmall ? this.#small : this.#main).shift();
      if (entry === undefined) return undefined;
      if (fromSmall) {
        if (entry.uses < usesToStay) return this.#bury(entry);
        this.#main.push({ file: entry.file, uses: 0 });
      } else {
        if (entry.uses === 0) return entry.file.id;
        entry.uses--;
        this.#main.push(entry);
      }
    }
  }

  wanted(): readonly PolicyFile[] {
    return this.#missed.take();
  }

  #bury(entry: Entry): string {
    this.#ghosts.push(entry);
    const bytesMax = this.#small.bytes + this.#main.bytes + entry.file.bytes;
    while (this.#ghosts.bytes > bytesMax) this.#ghosts.shift();
    return entry.file.id;
  }
}
