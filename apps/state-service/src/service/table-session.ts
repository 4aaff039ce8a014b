import type { ServerDuplexStream } from '@grpc/grpc-js';
import { type Clock, isPending, MillraceError, type Timer } from '@millrace/kernel';
import { endWith, type TableRequest } from '@millrace/proto';
import type { StateStore, StateTable } from '@millrace/state';
import type { Telemetry, TraceContext } from '@millrace/telemetry';
import { type Answer, encodeAnswer, encodeError, statistics } from './answers.ts';
import { parseOpen } from './open-request.ts';
import { TableRequests } from './table-requests.ts';

export interface SessionLimits {
  /** Bytes of requests under way and of answers not yet taken by the connection; beyond it a stream is not read. */
  readonly streamBytesMax: number;
  readonly scansMax: number;
  /** How long a new stream may be silent. */
  readonly openTimeoutMs: number;
}

export interface SessionOptions {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly limits: SessionLimits;
  /** Asked before a table is opened; throws when none may be. */
  readonly admit: () => void;
}

export type TableStream = ServerDuplexStream<TableRequest, Buffer>;

type State =
  | { readonly kind: 'waiting'; readonly timer: Timer }
  | { readonly kind: 'opening' }
  | { readonly kind: 'open'; readonly requests: TableRequests }
  | { readonly kind: 'ended' };

/** What a request costs beside its bytes; less than at the client, so that its window is what binds. */
const requestBytes = 128;

/**
 * One stream: one table, from its opening to its close. Requests are run in order and answered when done. What is under
 * way and what waits to be written is bounded: a stream that has too much of it is not read. The table is closed when
 * the stream ends, in whatever way; `ended` then resolves.
 */
export class TableSession {
  readonly ended: Promise<void>;
  readonly #options: SessionOptions;
  readonly #stream: TableStream;
  readonly #ended = Promise.withResolvers<void>();
  readonly #idle: (() => void)[] = [];
  #state: State;
  #expected = 0;
  #running = 0;
  #heldBytes = 0;
  #draining = false;

  constructor(stream: TableStream, options: SessionOptions) {
    this.#options = options;
    this.#stream = stream;
    this.ended = this.#ended.promise;
    const { openTimeoutMs } = options.limits;
    const timer = options.clock.schedule(openTimeoutMs, () => {
      this.#end(new MillraceError('rpc-deadline', `no table was opened within ${openTimeoutMs} ms`));
    });
    this.#state = { kind: 'waiting', timer };
    stream.on('data', (request: TableRequest) => this.#receive(request));
    stream.on('end', () => void this.#left());
    stream.on('cancelled', () => this.#end(undefined));
  }

  /** True from the moment that a table is asked for. */
  get holdsTable(): boolean {
    return this.#state.kind === 'opening' || this.#state.kind === 'open';
  }

  /** Reads no more, answers what is under way, then ends with an error of kind `retry`. */
  async drain(): Promise<void> {
    this.#draining = true;
    this.#stream.pause();
    await this.#whenIdle();
    this.#end(new MillraceError('state-service-stopping', 'the state-service is shutting down'));
    await this.ended;
  }

  #receive(request: TableRequest): void {
    if (this.#state.kind === 'ended') return;
    if (request.sequence !== this.#expected) {
      const text = `request ${request.sequence} came where ${this.#expected} was due`;
      return this.#end(new MillraceError('bad-argument', text));
    }
    this.#expected = (this.#expected + 1) >>> 0;
    const costBytes = requestBytes + payloadBytes(request);
    this.#hold(costBytes);
    this.#running++;
    const done = (): void => {
      this.#release(costBytes);
      this.#running--;
      if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve();
    };
    try {
      const answer = this.#run(request);
      if (isPending(answer)) {
        void answer
          .then((parts) => this.#answer(request.sequence, parts))
          .catch((error: unknown) => this.#refuse(request.sequence, error))
          .finally(done);
        return;
      }
      this.#answer(request.sequence, answer);
    } catch (error) {
      this.#refuse(request.sequence, error);
    }
    done();
  }

  #run(request: TableRequest): readonly Answer[] | Promise<readonly Answer[]> {
    if (this.#state.kind === 'open') return this.#state.requests.run(request);
    if (this.#state.kind !== 'waiting' || request.kind.case !== 'open') {
      throw new MillraceError('bad-argument', 'the first message opens the table, and its answer is awaited');
    }
    this.#state.timer.cancel();
    this.#options.admit();
    const open = parseOpen(request.kind.value);
    this.#state = { kind: 'opening' };
    return this.#open(open, request.parent === '' ? undefined : request.parent);
  }

  async #open(open: ReturnType<typeof parseOpen>, parent: TraceContext | undefined): Promise<readonly Answer[]> {
    const { store, telemetry, limits } = this.#options;
    const { spec, restore } = open;
    const attributes = { 'rpc.system': 'grpc', 'millrace.job': spec.job, 'millrace.operator': spec.operator };
    const table = await telemetry.tracer
      .span('StateService.Open', { parent, attributes }, (span) => store.openTable(spec, restore, span.context))
      .catch((error: unknown) => {
        // The client half-closes when it has read why.
        if (this.#state.kind === 'opening') this.#state = this.#waiting();
        throw error;
      });
    if (this.#isOver()) {
      await this.#closeTable(new TableRequests(table, { tracer: telemetry.tracer, scansMax: 0 }));
      throw new MillraceError('cancelled', 'the client has gone');
    }
    this.#state = {
      kind: 'open',
      requests: new TableRequests(table, { tracer: telemetry.tracer, scansMax: limits.scansMax }),
    };
    return [opened(store, table)];
  }

  #waiting(): State {
    const { clock, limits } = this.#options;
    const timer = clock.schedule(limits.openTimeoutMs, () => this.#end(undefined));
    return { kind: 'waiting', timer };
  }

  #isOver(): boolean {
    return this.#state.kind === 'ended';
  }

  #answer(sequence: number, parts: readonly Answer[]): void {
    for (const bytes of encodeAnswer(sequence, parts)) this.#write(bytes);
  }

  #refuse(sequence: number, error: unknown): void {
    this.#write(encodeError(sequence, error));
  }

  #write(bytes: Buffer): void {
    if (this.#isOver()) return;
    this.#hold(bytes.length);
    this.#stream.write(bytes, () => this.#release(bytes.length));
  }

  #hold(bytes: number): void {
    this.#heldBytes += bytes;
    if (this.#heldBytes >= this.#options.limits.streamBytesMax) this.#stream.pause();
  }

  #release(bytes: number): void {
    this.#heldBytes -= bytes;
    if (this.#draining || this.#isOver() || !this.#stream.isPaused()) return;
    if (this.#heldBytes < this.#options.limits.streamBytesMax / 2) this.#stream.resume();
  }

  #whenIdle(): Promise<void> {
    if (this.#running === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /** The client half-closed: it wants nothing more. The stream ends when the table is closed. */
  async #left(): Promise<void> {
    const closing = this.#leave();
    await closing;
    this.#stream.end();
  }

  #end(error: MillraceError | undefined): void {
    if (this.#isOver()) return;
    void this.#leave();
    if (error !== undefined) endWith(this.#stream, error);
  }

  /** Closes what is open; never rejects. */
  async #leave(): Promise<void> {
    const state = this.#state;
    if (state.kind === 'ended') return this.ended;
    this.#state = { kind: 'ended' };
    if (state.kind === 'waiting') state.timer.cancel();
    if (state.kind === 'open') await this.#closeTable(state.requests);
    // A table that is being opened is closed when it is there.
    if (state.kind === 'opening') await this.#whenIdle();
    this.#ended.resolve();
    return undefined;
  }

  async #closeTable(requests: TableRequests): Promise<void> {
    try {
      await requests.close();
    } catch (error) {
      this.#options.telemetry.log.warn('a state table was not closed cleanly', {
        error: MillraceError.from(error).message,
      });
    }
  }
}

function opened(store: StateStore, table: StateTable): Answer {
  return { case: 'opened', value: { store: store.name, stats: statistics(table.stats()) } };
}

function payloadBytes({ kind }: TableRequest): number {
  switch (kind.case) {
    case 'multiGet':
      return kind.value.bytes.length + kind.value.offsets.length;
    case 'write':
      return kind.value.arena.length + kind.value.entries.length + kind.value.expiry.length;
    default:
      return 0;
  }
}
