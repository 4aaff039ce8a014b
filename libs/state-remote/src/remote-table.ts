import { type MaybePromise, MillraceError } from '@millrace/kernel';
import type { TableResponse } from '@millrace/proto';
import type {
  PackedKeys,
  PackedValues,
  Peek,
  ScanPage,
  ScanRange,
  SnapshotHandle,
  StateTable,
  TableSpec,
  TableStats,
  WriteBatch,
} from '@millrace/state';
import type { Span, Telemetry, TraceContext } from '@millrace/telemetry';
import type { RemoteLimits } from './limits.ts';
import { remoteScan, type ScanCalls } from './remote-scan.ts';
import type { SentRequest, TableStream } from './stream/table-stream.ts';
import { batchToWire } from './wire/batch.ts';
import { keysToWire, valuesFromWire } from './wire/packed.ts';

export interface RemoteStateTableOptions {
  readonly spec: TableSpec;
  readonly stream: TableStream;
  readonly limits: RemoteLimits;
  readonly telemetry: Telemetry;
  readonly stats: TableStats;
  readonly onClose: () => void;
}

const noSpan: Span = { context: undefined, set: () => undefined };

/**
 * A state table in another process. Nothing is cached here: `peek` never knows. Writes are sent ahead, within the window
 * of the stream; one that fails fails every later call, snapshots first of all.
 */
export class RemoteStateTable implements StateTable {
  readonly spec: TableSpec;
  readonly #options: RemoteStateTableOptions;
  readonly #stream: TableStream;
  readonly #scanCalls: ScanCalls;
  /** A failed write, or the first failure of kind `fenced`: from then on every call fails with it. */
  #failure: MillraceError | undefined;
  #stats: TableStats;
  #statsAsked = false;
  #closing: Promise<void> | undefined;

  constructor(options: RemoteStateTableOptions) {
    const { spec, stream, limits } = options;
    this.#options = options;
    this.spec = spec;
    this.#stream = stream;
    this.#stats = options.stats;
    const timeoutMs = limits.requestTimeoutMs;
    this.#scanCalls = {
      next: (scan) => stream.request({ case: 'scanNext', value: { scan } }, { timeoutMs }),
      close: (scan) => {
        if (stream.failure === undefined) stream.request({ case: 'scanClose', value: { scan } }, { timeoutMs });
      },
      check: () => this.#check(),
    };
  }

  peek(): Peek {
    this.#check();
    return 'unknown';
  }

  multiGet(keys: PackedKeys, parent?: TraceContext): Promise<PackedValues> {
    return this.#spanned('state.remote.read', parent, async (span) => {
      this.#check();
      const value = keysToWire(keys);
      const payloadBytes = value.bytes.length + value.offsets.length;
      const parts = await this.#ask(
        this.#stream.request(
          { case: 'multiGet', value },
          { payloadBytes, timeoutMs: this.#options.limits.requestTimeoutMs, parent: span.context },
        ),
      );
      const values = valuesFromWire(parts.flatMap(({ kind }) => (kind.case === 'values' ? [kind.value] : [])));
      if (values.count !== keys.count) throw unfit('multiGet');
      return values;
    });
  }

  write(batch: WriteBatch): MaybePromise<void> {
    try {
      this.#check();
      for (const value of batchToWire(batch)) {
        const payloadBytes = value.arena.length + value.entries.length + value.expiry.length;
        this.#stream
          .request({ case: 'write', value }, { payloadBytes, timeoutMs: this.#options.limits.requestTimeoutMs })
          .answer.catch((error: unknown) => {
            this.#failure ??= MillraceError.from(error);
          });
      }
    } catch (error) {
      return Promise.reject(MillraceError.from(error));
    }
    return this.#stream.room();
  }

  scan({ start, end, pageEntriesMax = 0 }: ScanRange, parent?: TraceContext): AsyncIterable<ScanPage> {
    this.#check();
    const value = { start: start.slice(), ...(end === undefined ? {} : { end: end.slice() }), pageEntriesMax };
    const opened = this.#stream.request(
      { case: 'scanOpen', value },
      { payloadBytes: start.length, timeoutMs: this.#options.limits.requestTimeoutMs, parent },
    );
    return remoteScan({ ...opened, answer: this.#ask(opened) }, this.#scanCalls);
  }

  snapshot(checkpoint: number, parent?: TraceContext): Promise<SnapshotHandle> {
    return this.#spanned('state.remote.snapshot', parent, async (span) => {
      this.#check();
      const value = { checkpoint: BigInt(checkpoint) };
      const { snapshotTimeoutMs: timeoutMs } = this.#options.limits;
      const request = this.#stream.request({ case: 'snapshot', value }, { timeoutMs, parent: span.context });
      const kind = (await this.#ask(request))[0]?.kind;
      if (kind?.case !== 'snapshot') throw unfit('snapshot');
      this.#stats = kind.value.stats ?? this.#stats;
      return JSON.parse(kind.value.handle) as SnapshotHandle;
    });
  }

  /** As of the last snapshot or of an earlier call: each call asks for newer figures. */
  stats(): TableStats {
    if (!this.#statsAsked && this.#problem() === undefined) void this.#refreshStats();
    const { entriesEstimate, bytesInMemory, bytesStored } = this.#stats;
    return { entriesEstimate, bytesInMemory, bytesStored };
  }

  close(): Promise<void> {
    this.#closing ??= this.#stream.close().finally(this.#options.onClose);
    return this.#closing;
  }

  async #refreshStats(): Promise<void> {
    this.#statsAsked = true;
    const { requestTimeoutMs: timeoutMs } = this.#options.limits;
    const { answer } = this.#stream.request({ case: 'stats', value: {} }, { timeoutMs });
    const kind = await answer.then(
      (parts) => parts[0]?.kind,
      () => undefined, // the next call that matters fails with it
    );
    if (kind?.case === 'stats') this.#stats = kind.value;
    this.#statsAsked = false;
  }

  #ask({ answer }: SentRequest): Promise<readonly TableResponse[]> {
    const asked = answer.catch((error: unknown) => {
      const failure = MillraceError.from(error);
      if (failure.kind === 'fenced') this.#failure ??= failure;
      throw this.#failure ?? failure;
    });
    asked.catch(() => undefined); // a scan may never be read
    return asked;
  }

  #check(): void {
    const problem = this.#problem();
    if (problem !== undefined) throw problem;
  }

  #problem(): MillraceError | undefined {
    if (this.#closing !== undefined) {
      return new MillraceError('state-table-closed', `the table of ${this.spec.operator} is closed`);
    }
    return this.#failure ?? this.#stream.failure;
  }

  /** A span only where the caller has one: reads are too many to trace each. */
  #spanned<T>(name: string, parent: TraceContext | undefined, work: (span: Span) => Promise<T>): Promise<T> {
    if (parent === undefined) return work(noSpan);
    const attributes = { 'millrace.operator': this.spec.operator };
    return this.#options.telemetry.tracer.span(name, { parent, attributes }, work);
  }
}

function unfit(request: string): MillraceError {
  return new MillraceError('unexpected', `the state-service answered something else to ${request}`);
}
