import { compareBytes, isKind } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import type { Dfs, DfsEntry, DfsWriter } from './dfs.ts';
import { type RetryOptions, RetryPolicy } from './retry-policy.ts';

/**
 * Repeats what failed with kind `retry` (or did not answer in time), within limits.
 *
 * `putIfAbsent`: after an attempt whose outcome is unknown, "exists" may mean our own earlier success, so the file is
 * read back and equal bytes count as ours. **The limit of that**: two callers that write the same bytes to one path
 * may both be told that they won. Who must know the winner puts something unique into the bytes (ufs does).
 *
 * An attempt that ran out of time cannot be stopped and may still take effect later, after a newer `put` or `remove`
 * of the same path. ufs is safe from that: it never writes a path twice with other bytes.
 *
 * A writer's `append` and `close` have the time limit and no retry: a driver that can repeat a part does so itself.
 */
export class RetryingDfs implements Dfs {
  readonly uri: string;
  readonly #inner: Dfs;
  readonly #policy: RetryPolicy;

  constructor(inner: Dfs, options: RetryOptions) {
    this.uri = inner.uri;
    this.#inner = inner;
    this.#policy = new RetryPolicy(options);
  }

  put(path: string, bytes: Uint8Array, parent?: TraceContext): Promise<void> {
    return this.#policy.run(`put ${path}`, () => this.#inner.put(path, bytes, parent));
  }

  putIfAbsent(path: string, bytes: Uint8Array, parent?: TraceContext): Promise<boolean> {
    return this.#policy.run(`putIfAbsent ${path}`, async (attempt) => {
      if (await this.#inner.putIfAbsent(path, bytes, parent)) return true;
      if (attempt === 1) return false;
      const found = await this.#inner.readAll(path, parent);
      return found !== undefined && compareBytes(found, bytes) === 0;
    });
  }

  read(path: string, offset: number, length: number, parent?: TraceContext, into?: Uint8Array): Promise<Uint8Array> {
    let lent = into;
    return this.#policy.run(`read ${path}`, () => {
      const memory = lent;
      // Only once: what became of the attempt before nobody knows.
      lent = undefined;
      return this.#inner.read(path, offset, length, parent, memory);
    });
  }

  readAll(path: string, parent?: TraceContext): Promise<Uint8Array | undefined> {
    return this.#policy.run(`readAll ${path}`, () => this.#inner.readAll(path, parent));
  }

  stat(path: string): Promise<DfsEntry | undefined> {
    return this.#policy.run(`stat ${path}`, () => this.#inner.stat(path));
  }

  /** A failure in the middle starts the listing anew behind what was already given. */
  async *list(prefix: string): AsyncGenerator<DfsEntry> {
    let last: string | undefined;
    for (let attempt = 1; ; ) {
      const entries = this.#inner.list(prefix)[Symbol.asyncIterator]();
      try {
        for (;;) {
          const next = await this.#policy.once(`list ${prefix}`, () => entries.next());
          if (next.done === true) return;
          if (last !== undefined && next.value.path <= last) continue;
          last = next.value.path;
          attempt = 1;
          yield next.value;
        }
      } catch (error) {
        if (!isKind(error, 'retry') || attempt >= this.#policy.attemptsMax) throw error;
        this.#policy.onRetry(`list ${prefix}`, error);
      } finally {
        // Not awaited: a listing that hangs may never answer its end either.
        entries.return?.()?.then(undefined, () => undefined);
      }
      await this.#policy.pause(attempt++);
    }
  }

  remove(path: string): Promise<void> {
    return this.#policy.run(`remove ${path}`, () => this.#inner.remove(path));
  }

  async createWriter(path: string, parent?: TraceContext): Promise<DfsWriter> {
    const writer = await this.#policy.run(`createWriter ${path}`, () => this.#inner.createWriter(path, parent));
    return {
      append: (bytes) => this.#policy.once(`append ${path}`, () => writer.append(bytes)),
      close: () => this.#policy.once(`close ${path}`, () => writer.close()),
      abort: () => this.#policy.run(`abort ${path}`, () => writer.abort()),
    };
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}
