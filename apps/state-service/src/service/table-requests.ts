import { isPending, type MaybePromise, MillraceError, unreachable } from '@millrace/kernel';
import type { TableRequest } from '@millrace/proto';
import { type ScanPage, type StateTable, WriteBatch } from '@millrace/state';
import { batchFromWire, keysFromWire, pageToWire, valuesToWire } from '@millrace/state-remote';
import type { TraceContext, Tracer } from '@millrace/telemetry';
import { type Answer, statistics, unknownRequest } from './answers.ts';

type RequestOf<C> = Extract<TableRequest['kind'], { readonly case: C }>['value'];

const pageEntriesLimit = 65_536;

/**
 * Calls one table as its stream asks. The calls are made in the order of `run`; their answers come when they come. After
 * a write that failed every request fails with the same error: no snapshot may miss a write.
 */
export class TableRequests {
  readonly #table: StateTable;
  readonly #tracer: Tracer;
  readonly #scansMax: number;
  readonly #batch = new WriteBatch();
  /** Writes that the table holds back. */
  readonly #writes = new Set<Promise<unknown>>();
  readonly #scans = new Map<number, AsyncIterator<ScanPage>>();
  #failure: MillraceError | undefined;

  constructor(table: StateTable, options: { readonly tracer: Tracer; readonly scansMax: number }) {
    this.#table = table;
    this.#tracer = options.tracer;
    this.#scansMax = options.scansMax;
  }

  /** The parts of the answer; throws or rejects with what the client is to be told. */
  run({ sequence, parent, kind }: TableRequest): MaybePromise<readonly Answer[]> {
    if (this.#failure !== undefined) throw this.#failure;
    const context = parent === '' ? undefined : parent;
    switch (kind.case) {
      case 'multiGet':
        return this.#multiGet(kind.value, context);
      case 'write':
        return this.#write(kind.value);
      case 'scanOpen':
        return this.#openScan(sequence, kind.value, context);
      case 'scanNext':
        return this.#page(kind.value.scan);
      case 'scanClose':
        return this.#closeScan(kind.value.scan);
      case 'snapshot':
        return this.#snapshot(Number(kind.value.checkpoint), context);
      case 'stats':
        return [{ case: 'stats', value: statistics(this.#table.stats()) }];
      case 'open':
        throw new MillraceError('bad-argument', 'the table of this stream is open already');
      case undefined:
        throw unknownRequest();
      default:
        return unreachable(kind);
    }
  }

  /** Frees scans and closes the table. */
  async close(): Promise<void> {
    for (const scan of this.#scans.values()) void leave(scan);
    this.#scans.clear();
    await this.#table.close();
  }

  #multiGet(message: RequestOf<'multiGet'>, parent: TraceContext | undefined): MaybePromise<readonly Answer[]> {
    const keys = keysFromWire(message);
    const read = (context?: TraceContext): MaybePromise<readonly Answer[]> => {
      const values = this.#table.multiGet(keys, context);
      return isPending(values) ? values.then(valueParts) : valueParts(values);
    };
    return parent === undefined ? read() : this.#spanned('MultiGet', parent, async (context) => read(context));
  }

  #write(message: RequestOf<'write'>): MaybePromise<readonly Answer[]> {
    try {
      this.#batch.load(batchFromWire(message));
      const writing = this.#table.write(this.#batch);
      return isPending(writing) ? this.#heldBack(writing) : written;
    } catch (error) {
      throw this.#poison(error);
    }
  }

  #heldBack(writing: Promise<void>): Promise<readonly Answer[]> {
    const done = writing.then(
      () => written,
      (error: unknown) => {
        throw this.#poison(error);
      },
    );
    this.#writes.add(done);
    const forget = (): void => void this.#writes.delete(done);
    done.then(forget, forget);
    return done;
  }

  /** A write is lost and so is the table: what might pass elsewhere cannot be mended by another try here. */
  #poison(cause: unknown): MillraceError {
    const error = MillraceError.from(cause);
    this.#failure ??=
      error.kind === 'retry'
        ? new MillraceError('state-remote-broken', `a write was lost: ${error.message}`, { cause })
        : error;
    return this.#failure;
  }

  /** The first page is fetched at once: a scan that was begun frees its view however it ends. */
  #openScan(
    scan: number,
    { start, end, pageEntriesMax }: RequestOf<'scanOpen'>,
    parent: TraceContext | undefined,
  ): Promise<readonly Answer[]> {
    if (this.#scans.size >= this.#scansMax) {
      throw new MillraceError('state-service-full', `the table has ${this.#scans.size} open scans; no more may be`);
    }
    const size = pageEntriesMax === 0 ? {} : { pageEntriesMax: Math.min(pageEntriesMax, pageEntriesLimit) };
    const pages = this.#table.scan({ start, ...(end === undefined ? {} : { end }), ...size }, parent);
    this.#scans.set(scan, pages[Symbol.asyncIterator]());
    return this.#page(scan);
  }

  async #page(id: number): Promise<readonly Answer[]> {
    const scan = this.#scans.get(id);
    if (scan === undefined) throw new MillraceError('bad-argument', `there is no scan ${id}`);
    try {
      const { value, done } = await scan.next();
      if (done !== true) return pageToWire(value).map((page) => ({ case: 'page', value: page }));
      this.#scans.delete(id);
      return lastPage;
    } catch (error) {
      this.#scans.delete(id);
      void leave(scan);
      throw error;
    }
  }

  #closeScan(id: number): readonly Answer[] {
    const scan = this.#scans.get(id);
    this.#scans.delete(id);
    if (scan !== undefined) void leave(scan);
    return lastPage;
  }

  #snapshot(checkpoint: number, parent: TraceContext | undefined): Promise<readonly Answer[]> {
    return this.#spanned('Snapshot', parent, async (context) => {
      // The call first, then the waiting: later requests must not come between.
      const [handle] = await Promise.all([this.#table.snapshot(checkpoint, context), ...this.#writes]);
      const stats = statistics(this.#table.stats());
      return [{ case: 'snapshot', value: { handle: JSON.stringify(handle), stats } }];
    });
  }

  #spanned<T>(
    name: string,
    parent: TraceContext | undefined,
    work: (context?: TraceContext) => Promise<T>,
  ): Promise<T> {
    const attributes = { 'rpc.system': 'grpc', 'millrace.operator': this.#table.spec.operator };
    return this.#tracer.span(`StateService.${name}`, { parent, attributes }, (span) => work(span.context));
  }
}

const written: readonly Answer[] = [{ case: 'written', value: {} }];
const lastPage: readonly Answer[] = [{ case: 'page', value: { last: true } }];

function valueParts(values: Parameters<typeof valuesToWire>[0]): readonly Answer[] {
  return valuesToWire(values).map((value) => ({ case: 'values', value }));
}

/** Ends an iteration that nobody waits for. */
async function leave(scan: AsyncIterator<ScanPage>): Promise<void> {
  await scan.return?.().catch(() => undefined);
}
