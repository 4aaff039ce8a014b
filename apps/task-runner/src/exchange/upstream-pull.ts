import type { ClientDuplexStream, ServiceError, StatusObject } from '@grpc/grpc-js';
import { type Clock, isKind, MillraceError, type Random, sleep } from '@millrace/kernel';
import {
  type BidiClient,
  bidiClient,
  Exchange,
  frameCodec,
  fromStatus,
  type InitOf,
  type RawFrame,
  type RpcOptions,
} from '@millrace/proto';
import { channelKey, channelOf } from './channel-key.ts';
import { CreditBatch } from './credit-batch.ts';
import type { ExchangePeer } from './layout.ts';

export interface PullOptions {
  readonly peer: ExchangePeer;
  readonly job: string;
  readonly generation: number;
  /** This runner's id. */
  readonly runnerId: string;
  /** How long the peer may take to deploy the attempt. */
  readonly connectTimeoutMs: number;
  readonly rpc: RpcOptions;
  readonly clock: Clock;
  readonly random: Random;
}

export interface PullEvents {
  onFrame(frame: RawFrame): void;
  /** The stream broke, was refused or never came; called at most once. */
  onBroken(error: MillraceError): void;
  /** The peer ended the stream in order: its slots have finished. */
  onLeft(): void;
}

type Request = InitOf<typeof Exchange.method.pull>;
type Stream = ClientDuplexStream<Request, RawFrame>;

type PullState =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'attached'; readonly stream: Stream }
  /** Half-closed by us: we read on until the peer ends. */
  | { readonly kind: 'leaving' }
  | { readonly kind: 'gone' };

const backoffFirstMs = 50;
const backoffMaxMs = 1000;

/** The receiving end from one upstream runner: opens the stream, tries again until it is accepted, sends credits up. */
export class UpstreamPull {
  readonly #options: PullOptions;
  readonly #events: PullEvents;
  readonly #client: BidiClient<Request, RawFrame>;
  readonly #abort = new AbortController();
  readonly #credits: CreditBatch;
  /** Credits that wait for the stream to be accepted or to drain. */
  readonly #held = new Map<number, number>();
  #state: PullState = { kind: 'connecting' };
  #writable = true;

  constructor(options: PullOptions, events: PullEvents) {
    this.#options = options;
    this.#events = events;
    this.#client = bidiClient(Exchange.method.pull, frameCodec, options.peer.address, options.rpc);
    this.#credits = new CreditBatch((key, bytes) => this.#credit(key, bytes));
  }

  /** Resolves when the peer has accepted the stream, or when it never will (after `onBroken`) or need not. */
  async open(): Promise<void> {
    const { clock, random, connectTimeoutMs } = this.#options;
    const giveUpMs = clock.monotonicMs() + connectTimeoutMs;
    for (let backoffMs = backoffFirstMs; this.#state.kind === 'connecting'; backoffMs *= 2) {
      try {
        return await this.#connect();
      } catch (error) {
        if (!this.#connecting()) return;
        if (!isKind(error, 'retry') || clock.monotonicMs() >= giveUpMs) return this.#break(MillraceError.from(error));
      }
      const delayMs = Math.min(backoffMs, backoffMaxMs) * (0.5 + random.float() / 2);
      await sleep(clock, delayMs, this.#abort.signal).catch(() => undefined);
    }
  }

  /** True when nothing more comes: closed, broken, or ended by the peer. */
  get ended(): boolean {
    return this.#state.kind === 'gone';
  }

  grant(fromSlot: number, toSlot: number, edge: number, bytes: number): void {
    if (this.#state.kind === 'connecting' || this.#state.kind === 'attached') {
      this.#credits.add(channelKey(fromSlot, toSlot, edge), bytes);
    }
  }

  /** Takes leave in order: nothing more is wanted, the peer ends the stream. */
  leave(): void {
    if (this.#state.kind === 'attached') {
      const { stream } = this.#state;
      this.#state = { kind: 'leaving' };
      stream.end();
    } else if (this.#state.kind === 'connecting') this.close();
  }

  /** Ends at once. Idempotent. */
  close(): void {
    const { kind } = this.#state;
    if (kind === 'gone') return;
    const stream = this.#state.kind === 'attached' ? this.#state.stream : undefined;
    this.#state = { kind: 'gone' };
    this.#credits.close();
    this.#abort.abort(new MillraceError('cancelled', 'the exchange was closed'));
    stream?.cancel();
    this.#client.close();
  }

  #connecting(): boolean {
    return this.#state.kind === 'connecting';
  }

  #connect(): Promise<void> {
    const { peer, job, generation, runnerId } = this.#options;
    const stream = this.#client.open();
    const giveUp = (): void => stream.cancel();
    this.#abort.signal.addEventListener('abort', giveUp, { once: true });
    return new Promise((resolve, reject) => {
      let accepted = false;
      stream.on('metadata', () => {
        if (!this.#connecting()) return;
        accepted = true;
        this.#attached(stream);
        resolve();
      });
      stream.on('data', (frame: RawFrame) => {
        if (this.#state.kind === 'attached') this.#events.onFrame(frame);
      });
      stream.on('drain', () => {
        this.#writable = true;
        this.#flushHeld();
      });
      const ended = (error: MillraceError | undefined): void => {
        this.#abort.signal.removeEventListener('abort', giveUp);
        if (accepted) this.#ended(error);
        else reject(error ?? new MillraceError('rpc-unavailable', 'the stream ended before it was accepted'));
      };
      stream.on('error', (error: ServiceError) => ended(fromStatus(error)));
      let ok = false;
      stream.on('status', (status: StatusObject) => {
        ok = status.code === 0;
      });
      // After the status and after every frame.
      stream.on('end', () => ok && ended(undefined));
      const target = { job, generation: BigInt(generation), runnerId: peer.runnerId };
      stream.write({ puller: runnerId, kind: { case: 'hello', value: target } });
    });
  }

  #attached(stream: Stream): void {
    this.#state = { kind: 'attached', stream };
    this.#writable = true;
    this.#flushHeld();
  }

  #ended(error: MillraceError | undefined): void {
    const { kind } = this.#state;
    if (kind === 'gone') return;
    if (error !== undefined && kind === 'attached') return this.#break(error);
    this.close();
    if (kind === 'attached') this.#events.onLeft();
  }

  #credit(key: number, bytes: number): void {
    this.#held.set(key, (this.#held.get(key) ?? 0) + bytes);
    this.#flushHeld();
  }

  #flushHeld(): void {
    if (this.#state.kind !== 'attached') return;
    for (const [key, bytes] of this.#held) {
      if (!this.#writable) return;
      this.#held.delete(key);
      this.#writable = this.#state.stream.write({ kind: { case: 'credit', value: { ...channelOf(key), bytes } } });
    }
  }

  #break(cause: MillraceError): void {
    const { runnerId, address } = this.#options.peer;
    this.close();
    const text = `no records from runner ${runnerId} at ${address}: ${cause.message}`;
    this.#events.onBroken(cause.kind === 'retry' ? new MillraceError('exchange-broken', text, { cause }) : cause);
  }
}
