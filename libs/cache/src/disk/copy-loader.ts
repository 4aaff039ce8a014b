import { type Clock, MillraceError } from '@millrace/kernel';
import type { CacheDisk } from './cache-disk.ts';
import type { CachedFile } from './cached-file.ts';
import { CopyWriter } from './copy-format.ts';

/** Reads `[offset, offset + length)` of the remote file at `path`. */
export type RemoteRead = (path: string, offset: number, length: number) => Promise<Uint8Array>;

export interface CopyLoaderOptions {
  readonly disk: CacheDisk;
  readonly fetch: RemoteRead;
  readonly clock: Clock;
}

export type LoadOutcome =
  | { readonly kind: 'loaded' }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'failed'; readonly error: unknown };

const readBytes = 1024 * 1024;
/** A file that could not be loaded is left alone so long. */
const retryAfterMs = 30_000;
const failuresMax = 1024;

/** Makes copies of remote files. Memory: one read of a megabyte for each load under way. */
export class CopyLoader {
  readonly #options: CopyLoaderOptions;
  readonly #failed = new Map<string, number>();
  #closed = false;

  constructor(options: CopyLoaderOptions) {
    this.#options = options;
  }

  failedLately(name: string): boolean {
    const atMs = this.#failed.get(name);
    return atMs !== undefined && this.#options.clock.monotonicMs() - atMs < retryAfterMs;
  }

  /** `mayWrite` is asked before each write. Whatever the outcome, no temporary file is left. */
  async load(ticket: string, name: string, file: CachedFile, mayWrite: () => boolean): Promise<LoadOutcome> {
    const { disk } = this.#options;
    try {
      if (!(await this.#copy(ticket, file, mayWrite))) {
        await disk.removeTemporary(ticket);
        return { kind: 'stopped' };
      }
      await disk.publish(ticket, name);
      this.#failed.delete(name);
      return { kind: 'loaded' };
    } catch (error) {
      this.#remember(name);
      await disk.removeTemporary(ticket).catch(() => undefined);
      return { kind: 'failed', error };
    }
  }

  /** Ends loads at their next read. */
  close(): void {
    this.#closed = true;
  }

  async #copy(ticket: string, file: CachedFile, mayWrite: () => boolean): Promise<boolean> {
    const { disk, fetch } = this.#options;
    const writer = new CopyWriter(await disk.create(ticket));
    try {
      while (writer.sizeBytes < file.sizeBytes) {
        const length = Math.min(readBytes, file.sizeBytes - writer.sizeBytes);
        const bytes = await fetch(file.path, writer.sizeBytes, length);
        if (this.#closed || !mayWrite()) {
          await writer.close();
          return false;
        }
        if (bytes.length !== length) throw wrong(file, `it has ${writer.sizeBytes + bytes.length} bytes`);
        await writer.append(bytes);
      }
      if (writer.crc32 !== file.crc32) throw wrong(file, 'its checksum is another');
      await writer.finish();
      return true;
    } catch (error) {
      await writer.close().catch(() => undefined);
      throw error;
    }
  }

  #remember(name: string): void {
    this.#failed.set(name, this.#options.clock.monotonicMs());
    if (this.#failed.size <= failuresMax) return;
    for (const oldest of this.#failed.keys()) {
      this.#failed.delete(oldest);
      return;
    }
  }
}

function wrong(file: CachedFile, what: string): MillraceError {
  return new MillraceError('unexpected', `${file.path} is not what it should be: ${what}`, {
    details: { path: file.path },
  });
}
