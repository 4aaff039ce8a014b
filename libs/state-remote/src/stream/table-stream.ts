import type { ClientDuplexStream, ServiceError } from '@grpc/grpc-js';
import { type Clock, type MaybePromise, MillraceError } from '@millrace/kernel';
import {
  type BidiClient,
  errorFromWire,
  fromStatus,
  type InitOf,
  type StateService,
  type TableResponse,
} from '@millrace/proto';
import type { RemoteLimits } from '../limits.ts';
import { Deadlines } from './deadlines.ts';
import { SendQueue } from './send-queue.ts';

type RequestInit = InitOf<typeof StateService.method.table>;
export type RequestKind = NonNullable<RequestInit['kind']>;
export type TableClient = BidiClient<RequestInit, TableResponse>;

export interface TableStreamOptions {
  readonly client: TableClient;
  readonly address: string;
  readonly limits: RemoteLimits;
  readonly clock: Clock;
  /** Called for each answer with the time since its request was sent. */
  readonly onAnswered: (request: string, latencyMs: number) => void;
}

export interface RequestOptions {
  /** Size of what the request carries, bytes. */
  readonly payloadBytes?: number;
  readonly timeoutMs: number;
  readonly parent?: string | undefined;
}

export interface SentRequest {
  /** Names the request on the wire. */
  readonly sequence: number;
  /** The parts of the answer, at least one. Never unhandled: who does not need it may drop it. */
  readonly answer: Promise<readonly TableResponse[]>;
}

interface Waiting {
  readonly message: RequestInit;
  readonly sequence: number;
  readonly costBytes: number;
  readonly timeoutMs: number;
  sentMs: number;
  readonly parts: TableResponse[];
  resolve(parts: readonly TableResponse[]): void;
  reject(error: MillraceError): void;
}

type State =
  | { readonly kind: 'open' }
  /** Half-closed by us. */
  | { readonly kind: 'closing' }
  | { readonly kind: 'broken'; readonly error: MillraceError };

/** What a request costs beside its payload: bounds how many small ones may be under way. */
const requestBytes = 256;

/**
 * The client's end of a table's stream: numbers requests, keeps the window, matches answers, watches deadlines. Bytes
 * beyond the window wait in a queue here and nowhere else: the window bounds what gRPC buffers, too. A deadline that is
 * missed breaks the stream, for what became of the request is not known. There is no reconnect: the attempt restarts.
 */
export class TableStream {
  readonly #options: TableStreamOptions;
  readonly #stream: ClientDuplexStream<RequestInit, TableResponse>;
  readonly #queue: SendQueue<Waiting>;
  readonly #underWay = new Map<number, Waiting>();
  readonly #deadlines: Deadlines;
  readonly #ended = Promise.withResolvers<void>();
  #room: PromiseWithResolvers<void> | undefined;
  #sequence = 0;
  #state: State = { kind: 'open' };
  #closing: Promise<void> | undefined;

  constructor(options: TableStreamOptions) {
    this.#options = options;
    this.#queue = new SendQueue(options.limits.windowBytes);
    this.#deadlines = new Deadlines(options.clock, (sequence) => this.#missed(sequence));
    this.#stream = options.client.open();
    this.#stream.on('data', (response: TableResponse) => this.#receive(response));
    this.#stream.on('error', (error: ServiceError) => this.#end(fromStatus(error)));
    this.#stream.on('end', () => this.#end(new MillraceError('rpc-unavailable', 'the service ended the stream')));
  }

  /** Why nothing more can be asked; undefined while all is well. */
  get failure(): MillraceError | undefined {
    if (this.#state.kind === 'broken') return this.#state.error;
    if (this.#state.kind === 'closing') return closed();
    const { queueBytesMax } = this.#options.limits;
    if (this.#queue.waitingBytes < queueBytesMax) return undefined;
    const text = `${this.#queue.waitingBytes} bytes wait for the state-service; no more than ${queueBytesMax} may`;
    return new MillraceError('state-remote-overrun', text, { details: { queueBytesMax } });
  }

  /** Bytes of requests in this process's memory: those that wait and those under way. */
  get heldBytes(): number {
    return this.#queue.waitingBytes + this.#queue.sentBytes;
  }

  /** Sends behind all earlier requests, as soon as the window has room. The caller has looked at {@link failure}. */
  request(kind: RequestKind, { payloadBytes = 0, timeoutMs, parent }: RequestOptions): SentRequest {
    const sequence = this.#sequence;
    this.#sequence = (sequence + 1) >>> 0;
    const answer = new Promise<readonly TableResponse[]>((resolve, reject) => {
      const message = { sequence, kind, ...(parent === undefined ? {} : { parent }) };
      const costBytes = requestBytes + payloadBytes;
      this.#queue.push({ message, sequence, costBytes, timeoutMs, sentMs: 0, parts: [], resolve, reject });
    });
    answer.catch(() => undefined);
    this.#pump();
    return { sequence, answer };
  }

  /** Nothing when everything is sent, else a promise of that. */
  room(): MaybePromise<void> {
    if (this.#queue.isEmpty) return undefined;
    if (this.#room === undefined) {
      this.#room = Promise.withResolvers();
      this.#room.promise.catch(() => undefined);
    }
    return this.#room.promise;
  }

  /** Closes the table at the service; what is not answered yet rejects. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#state.kind === 'broken') return;
    this.#state = { kind: 'closing' };
    this.#rejectAll(closed());
    this.#stream.end();
    const { clock, limits } = this.#options;
    const timer = clock.schedule(limits.closeTimeoutMs, () => this.#stream.cancel());
    await this.#ended.promise;
    timer.cancel();
  }

  #pump(): void {
    for (;;) {
      const item = this.#queue.next();
      if (item === undefined) break;
      item.sentMs = this.#options.clock.monotonicMs();
      this.#underWay.set(item.sequence, item);
      this.#deadlines.set(item.sequence, item.timeoutMs);
      this.#stream.write(item.message);
    }
    if (this.#queue.isEmpty) this.#releaseRoom((room) => room.resolve());
  }

  #receive(response: TableResponse): void {
    const item = this.#underWay.get(response.sequence);
    if (item === undefined) return; // the table was closed meanwhile
    item.parts.push(response);
    if (response.more) return;
    this.#underWay.delete(response.sequence);
    this.#deadlines.clear(response.sequence);
    this.#queue.done(item);
    this.#options.onAnswered(item.message.kind?.case ?? '', this.#options.clock.monotonicMs() - item.sentMs);
    if (response.kind.case === 'error') item.reject(errorFromWire(response.kind.value));
    else item.resolve(item.parts);
    this.#pump();
  }

  #missed(sequence: number): void {
    const item = this.#underWay.get(sequence);
    const what = `${item?.message.kind?.case ?? 'request'} got no answer within ${item?.timeoutMs ?? 0} ms`;
    this.#end(new MillraceError('rpc-deadline', what));
    this.#stream.cancel();
  }

  #end(cause: MillraceError): void {
    this.#ended.resolve();
    if (this.#state.kind === 'broken') return;
    const wasClosing = this.#state.kind === 'closing';
    const error = wasClosing ? closed() : this.#broken(cause);
    this.#state = { kind: 'broken', error };
    this.#rejectAll(error);
  }

  /** What may pass is told as a broken connection, which restarts the attempt; everything else as it is. */
  #broken(cause: MillraceError): MillraceError {
    if (cause.kind !== 'retry' && cause.kind !== 'cancelled') return cause;
    const { address } = this.#options;
    const text = `the state table at ${address} is lost: ${cause.message}`;
    return new MillraceError('state-remote-broken', text, { cause, details: { address, reason: cause.code } });
  }

  #rejectAll(error: MillraceError): void {
    this.#deadlines.close();
    for (const item of [...this.#underWay.values(), ...this.#queue.drop()]) item.reject(error);
    for (const item of this.#underWay.values()) this.#queue.done(item);
    this.#underWay.clear();
    this.#releaseRoom((room) => room.reject(error));
  }

  #releaseRoom(how: (room: PromiseWithResolvers<void>) => void): void {
    const room = this.#room;
    this.#room = undefined;
    if (room !== undefined) how(room);
  }
}

function closed(): MillraceError {
  return new MillraceError('state-table-closed', 'the state table is closed');
}
