import type { Clock } from '@millrace/kernel';
import { type CacheDisk, isFull } from './cache-disk.ts';
import { type CacheLink, leaseMs } from './cache-link.ts';
import { type CachedFile, copyName } from './cached-file.ts';
import { CopyWriter, copyBytes } from './copy-format.ts';
import type { FileThrough } from './file-cache.ts';

export interface CopyThroughOptions {
  readonly disk: CacheDisk;
  readonly link: CacheLink;
  readonly clock: Clock;
  /** Unique. */
  readonly ticket: string;
}

/** Space is asked for in steps that double up to the second. */
const stepBytesMin = 1024 * 1024;
const stepBytesMax = 16 * 1024 * 1024;
/** A disk that takes longer is out of order; the file must not wait for it. */
const writeTimeoutMs = 2000;

/**
 * The copy of a file, written as the file is. Whatever fails gives up the copy, never the file. When the thread dies, or
 * the disk stands still, the space comes back at the end of the lease.
 */
export class CopyThrough implements FileThrough {
  readonly #options: CopyThroughOptions;
  #grantedBytes = 0;
  #grantedAtMs = Number.NEGATIVE_INFINITY;
  #writer: CopyWriter | undefined;
  #ended = false;

  constructor(options: CopyThroughOptions) {
    this.#options = options;
  }

  append(bytes: Uint8Array): Promise<void> {
    return this.#step(async () => {
      if (!(await this.#hasSpace((this.#writer?.sizeBytes ?? 0) + bytes.length))) return this.#giveUp('aborted');
      this.#writer ??= new CopyWriter(await this.#options.disk.create(this.#options.ticket));
      await this.#writer.append(bytes);
    });
  }

  seal(file: CachedFile): Promise<void> {
    return this.#step(async () => {
      const { disk, link, ticket } = this.#options;
      const name = copyName(file);
      const writer = this.#writer;
      const isWhole = writer?.sizeBytes === file.sizeBytes && writer.crc32 === file.crc32;
      if (name === undefined || writer === undefined || !isWhole) return this.#giveUp('aborted');
      if (!(await this.#hasSpace(file.sizeBytes))) return this.#giveUp('aborted');
      await writer.finish();
      await disk.publish(ticket, name);
      this.#ended = true;
      link.notify({ kind: 'published', ticket, file });
    });
  }

  abort(): Promise<void> {
    return this.#step(() => this.#giveUp('aborted'));
  }

  async #step(work: () => Promise<void>): Promise<void> {
    if (this.#ended) return;
    const timeout = Promise.withResolvers<'late'>();
    const timer = this.#options.clock.schedule(writeTimeoutMs, () => timeout.resolve('late'));
    const working = work().catch((error: unknown) => this.#giveUp(isFull(error) ? 'full' : 'failed'));
    // What hangs holds its space until the lease ends: it may still write.
    if ((await Promise.race([working, timeout.promise])) === 'late') this.#ended = true;
    timer.cancel();
  }

  /** Whether there is room for a copy of so many bytes, and its lease lasts. */
  async #hasSpace(sizeBytes: number): Promise<boolean> {
    const { link, ticket, clock } = this.#options;
    const missing = copyBytes(sizeBytes) - this.#grantedBytes;
    const isFresh = clock.monotonicMs() - this.#grantedAtMs < leaseMs / 2;
    if (missing <= 0 && isFresh) return true;
    const step = Math.min(stepBytesMax, Math.max(stepBytesMin, this.#grantedBytes));
    const bytes = missing <= 0 ? 0 : Math.max(missing, step);
    const askedAtMs = clock.monotonicMs();
    if (!(await link.request({ ticket, bytes }))) return false;
    this.#grantedBytes += bytes;
    this.#grantedAtMs = askedAtMs;
    return true;
  }

  async #giveUp(why: 'aborted' | 'failed' | 'full'): Promise<void> {
    const { disk, link, ticket } = this.#options;
    this.#ended = true;
    await this.#writer?.close().catch(() => undefined);
    const removed = await disk.removeTemporary(ticket).then(
      () => true,
      () => false,
    );
    // What cannot be removed keeps its space until the lease ends.
    if (removed) link.notify({ kind: 'given-up', ticket, why });
  }
}
