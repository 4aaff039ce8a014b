import { type Clock, MillraceError } from '@millrace/kernel';
import type { Counter, Histogram, Span, Telemetry, TraceContext } from '@millrace/telemetry';
import type { Dfs, DfsEntry, DfsWriter } from './dfs.ts';
import { type DfsOperation, DfsStats } from './stats.ts';

interface Request {
  readonly operation: DfsOperation;
  readonly path: string;
  readonly parent?: TraceContext | undefined;
}

/**
 * Counts requests, bytes, failures and time of the Dfs beneath it, and records a span (`dfs.put`, `dfs.read`, …) for a
 * request that names its parent. Below {@link RetryingDfs} each attempt counts.
 */
export class MeteredDfs implements Dfs {
  readonly uri: string;
  readonly stats = new DfsStats();
  readonly #inner: Dfs;
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;
  readonly #requests: Counter;
  readonly #errors: Counter;
  readonly #bytesRead: Counter;
  readonly #bytesWritten: Counter;
  readonly #durationMs: Histogram;

  constructor(inner: Dfs, options: { readonly clock: Clock; readonly telemetry: Telemetry }) {
    const { metrics } = options.telemetry;
    this.uri = inner.uri;
    this.#inner = inner;
    this.#clock = options.clock;
    this.#telemetry = options.telemetry;
    this.#requests = metrics.counter('millrace_dfs_requests_total', 'Requests to the distributed file system.');
    this.#errors = metrics.counter('millrace_dfs_errors_total', 'Requests to the distributed file system that failed.');
    this.#bytesRead = metrics.counter('millrace_dfs_read_bytes_total', 'Bytes read from the distributed file system.');
    this.#bytesWritten = metrics.counter(
      'millrace_dfs_written_bytes_total',
      'Bytes written to the distributed file system.',
    );
    this.#durationMs = metrics.histogram(
      'millrace_dfs_request_ms',
      'Time of a request to the distributed file system.',
    );
  }

  async put(path: string, bytes: Uint8Array, parent?: TraceContext): Promise<void> {
    await this.#traced({ operation: 'put', path, parent }, (context) => this.#inner.put(path, bytes, context));
    this.#wrote(bytes.length);
  }

  async putIfAbsent(path: string, bytes: Uint8Array, parent?: TraceContext): Promise<boolean> {
    const created = await this.#traced({ operation: 'putIfAbsent', path, parent }, (context) =>
      this.#inner.putIfAbsent(path, bytes, context),
    );
    if (created) this.#wrote(bytes.length);
    return created;
  }

  async read(
    path: string,
    offset: number,
    length: number,
    parent?: TraceContext,
    into?: Uint8Array,
  ): Promise<Uint8Array> {
    const bytes = await this.#traced({ operation: 'read', path, parent }, (context) =>
      this.#inner.read(path, offset, length, context, into),
    );
    this.#read(bytes.length);
    return bytes;
  }

  async readAll(path: string, parent?: TraceContext): Promise<Uint8Array | undefined> {
    const bytes = await this.#traced({ operation: 'readAll', path, parent }, (context) =>
      this.#inner.readAll(path, context),
    );
    if (bytes !== undefined) this.#read(bytes.length);
    return bytes;
  }

  stat(path: string): Promise<DfsEntry | undefined> {
    return this.#traced({ operation: 'stat', path }, () => this.#inner.stat(path));
  }

  async *list(prefix: string): AsyncGenerator<DfsEntry> {
    const startMs = this.#clock.monotonicMs();
    try {
      yield* this.#inner.list(prefix);
      this.#done('list', startMs);
    } catch (error) {
      this.#done('list', startMs, error);
      throw error;
    }
  }

  remove(path: string): Promise<void> {
    return this.#traced({ operation: 'remove', path }, () => this.#inner.remove(path));
  }

  async createWriter(path: string, parent?: TraceContext): Promise<DfsWriter> {
    const writer = await this.#traced({ operation: 'createWriter', path, parent }, (context) =>
      this.#inner.createWriter(path, context),
    );
    return {
      append: async (bytes) => {
        await this.#traced({ operation: 'append', path, parent }, () => writer.append(bytes));
        this.#wrote(bytes.length);
      },
      close: () => this.#traced({ operation: 'closeWriter', path, parent }, () => writer.close()),
      abort: () => this.#traced({ operation: 'abortWriter', path, parent }, () => writer.abort()),
    };
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  /** Counts and times `work`, in a span when there is a parent; `work` gets what its own children name as parent. */
  async #traced<T>(request: Request, work: (context: TraceContext | undefined) => Promise<T>): Promise<T> {
    const { operation, path, parent } = request;
    const startMs = this.#clock.monotonicMs();
    try {
      const result =
        parent === undefined
          ? await work(undefined)
          : await this.#telemetry.tracer.span(
              `dfs.${operation}`,
              { parent, attributes: { 'dfs.path': path } },
              (span: Span) => work(span.context ?? parent),
            );
      this.#done(operation, startMs);
      return result;
    } catch (error) {
      this.#done(operation, startMs, error);
      throw error;
    }
  }

  #done(operation: DfsOperation, startMs: number, error?: unknown): void {
    const durationMs = this.#clock.monotonicMs() - startMs;
    this.stats.requests[operation]++;
    this.#requests.add(1, { operation });
    this.#durationMs.record(durationMs, { operation });
    if (error === undefined) return;
    this.stats.errors++;
    this.#errors.add(1, { operation, code: MillraceError.from(error).code });
  }

  #read(bytes: number): void {
    this.stats.bytesRead += bytes;
    this.#bytesRead.add(bytes);
  }

  #wrote(bytes: number): void {
    this.stats.bytesWritten += bytes;
    this.#bytesWritten.add(bytes);
  }
}
