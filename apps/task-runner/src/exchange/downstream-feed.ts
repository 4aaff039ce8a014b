import { Metadata, type ServerDuplexStream } from '@grpc/grpc-js';
import { assert, MillraceError, unreachable } from '@millrace/kernel';
import { type Credit, endWith, type PullRequest, type RawFrame } from '@millrace/proto';
import { channelKey } from './channel-key.ts';

export type PullStream = ServerDuplexStream<PullRequest, RawFrame>;

export interface FeedEvents {
  onCredit(credit: Credit): void;
  /** The puller went away or misbehaved after it had taken frames; called at most once. */
  onBroken(error: MillraceError): void;
}

type FeedState =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'attached'; readonly stream: PullStream }
  | { readonly kind: 'gone' };

/**
 * The sending end towards one downstream runner: frames of every channel in one queue, written to the stream that the
 * runner pulls. `write() === false` stops the writing until the drain; the byte credits of the channels bound the
 * queue, which is checked: a channel never holds more here than its window and two frames. (One by which a sender may
 * overdraw; and one that the receiver has read and granted while its write is not yet confirmed here.)
 */
export class DownstreamFeed {
  readonly #puller: string;
  readonly #windowBytes: number;
  readonly #events: FeedEvents;
  #state: FeedState = { kind: 'waiting' };
  #queue: RawFrame[] = [];
  #head = 0;
  readonly #channelBytes = new Map<number, number>();
  #queuedBytes = 0;
  #largestFrameBytes = 0;
  #writable = false;
  #written = false;
  #ending = false;

  constructor(puller: string, windowBytes: number, events: FeedEvents) {
    this.#puller = puller;
    this.#windowBytes = windowBytes;
    this.#events = events;
  }

  /** Bytes handed over by the slots and not yet confirmed as written. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  send(frame: RawFrame): void {
    if (this.#state.kind === 'gone') return;
    const key = channelKey(frame.fromSlot, frame.toSlot, frame.edge);
    const held = this.#channelBytes.get(key) ?? 0;
    if (held >= this.#windowBytes + this.#largestFrameBytes) return this.#overrun(frame, held);
    const bytes = frame.payload.byteLength;
    this.#largestFrameBytes = Math.max(this.#largestFrameBytes, bytes);
    this.#channelBytes.set(key, held + bytes);
    this.#queuedBytes += bytes;
    this.#queue.push(frame);
    this.#pump();
  }

  /**
   * Takes the puller's stream. Throws when another stream of it already carries frames. A stream that was lost before
   * its first frame is forgotten, for the puller tries again until it has our metadata.
   */
  attach(stream: PullStream): void {
    if (this.#state.kind === 'gone' || (this.#state.kind === 'attached' && this.#written)) {
      throw new MillraceError('exchange-broken', `the stream to runner ${this.#puller} cannot be opened a second time`);
    }
    if (this.#state.kind === 'attached') endWith(this.#state.stream, replaced());
    this.#state = { kind: 'attached', stream };
    this.#writable = true;
    stream.on('data', (request: PullRequest) => this.#request(stream, request));
    stream.on('end', () => this.#left(stream));
    stream.on('cancelled', () => this.#lost(stream));
    stream.on('drain', () => {
      if (!this.#holds(stream)) return;
      this.#writable = true;
      this.#pump();
    });
    stream.sendMetadata(new Metadata());
    this.#pump();
  }

  /** Without an error: ends the stream when everything is written, as a slot's finish wants it. Idempotent. */
  close(error?: MillraceError): void {
    if (this.#state.kind !== 'attached') {
      this.#leave();
    } else if (error === undefined) {
      this.#ending = true;
      this.#pump();
    } else {
      const { stream } = this.#state;
      this.#leave();
      endWith(stream, error);
    }
  }

  #pump(): void {
    if (this.#state.kind !== 'attached') return;
    const { stream } = this.#state;
    while (this.#writable && this.#head < this.#queue.length) {
      const frame = this.#queue[this.#head++] as RawFrame;
      this.#written = true;
      this.#writable = stream.write(frame, () => this.#release(frame));
    }
    this.#compact();
    if (this.#ending && this.#queue.length === 0) {
      this.#leave();
      stream.end();
    }
  }

  /** Drops the written head of the queue, rarely enough to cost nothing per frame. */
  #compact(): void {
    if (this.#head === this.#queue.length) this.#queue = [];
    else if (this.#head >= 1024) this.#queue = this.#queue.slice(this.#head);
    else return;
    this.#head = 0;
  }

  #release(frame: RawFrame): void {
    const key = channelKey(frame.fromSlot, frame.toSlot, frame.edge);
    const held = this.#channelBytes.get(key);
    if (held === undefined) return; // let go of when the puller left
    assert(held >= frame.payload.byteLength, 'exchange: released more than was held');
    this.#channelBytes.set(key, held - frame.payload.byteLength);
    this.#queuedBytes -= frame.payload.byteLength;
  }

  #request(stream: PullStream, request: PullRequest): void {
    if (!this.#holds(stream)) return;
    const { kind } = request;
    switch (kind.case) {
      case 'credit':
        return this.#events.onCredit(kind.value);
      case 'hello':
      case undefined:
        return this.#break(new MillraceError('exchange-broken', `runner ${this.#puller} sent a second hello`));
      default:
        unreachable(kind);
    }
  }

  /** The puller half-closed: it has finished and takes nothing more. */
  #left(stream: PullStream): void {
    if (!this.#holds(stream)) return;
    this.#leave();
    stream.end();
  }

  #lost(stream: PullStream): void {
    if (!this.#holds(stream)) return;
    if (!this.#written && !this.#ending) {
      this.#state = { kind: 'waiting' };
      return;
    }
    const orderly = this.#ending;
    this.#leave();
    if (!orderly) {
      this.#events.onBroken(new MillraceError('exchange-broken', `the stream to runner ${this.#puller} broke`));
    }
  }

  #overrun(frame: RawFrame, held: number): void {
    const text = `slot ${frame.fromSlot} sent ${held} bytes to slot ${frame.toSlot} beyond its credit`;
    const details = { edge: frame.edge, heldBytes: held, windowBytes: this.#windowBytes };
    this.#break(new MillraceError('exchange-overrun', text, { details }));
  }

  #break(error: MillraceError): void {
    this.close(error);
    this.#events.onBroken(error);
  }

  #holds(stream: PullStream): boolean {
    return this.#state.kind === 'attached' && this.#state.stream === stream;
  }

  #leave(): void {
    this.#state = { kind: 'gone' };
    this.#queue = [];
    this.#head = 0;
    this.#channelBytes.clear();
    this.#queuedBytes = 0;
  }
}

function replaced(): MillraceError {
  return new MillraceError('cancelled', 'the puller opened another stream');
}
