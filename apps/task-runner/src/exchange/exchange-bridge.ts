import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { assert, type Clock, errorToJson, MillraceError, type Random, sleep } from '@millrace/kernel';
import type { RawFrame, RpcOptions } from '@millrace/proto';
import type { Telemetry } from '@millrace/telemetry';
import { DownstreamFeed, type PullStream } from './downstream-feed.ts';
import type { ExchangeLayout, ExchangePeer } from './layout.ts';
import { type PortMessage, post, postFrame } from './port-message.ts';
import { UpstreamPull } from './upstream-pull.ts';

export interface ExchangeOptions {
  readonly job: string;
  readonly generation: number;
  /** This runner's id. */
  readonly runnerId: string;
  /** `exchangeLayout(plan, runnerId)`. */
  readonly layout: ExchangeLayout;
  /** Credit window of one channel, as the slots use it (`SlotSettings.channelWindowBytes`): bounds what waits here. */
  readonly channelWindowBytes: number;
  /** How long another runner may take to deploy the attempt; default 60 s. */
  readonly connectTimeoutMs?: number;
  /** Limits and keepalive of the streams that are pulled; by default a frozen peer is noticed in two seconds. */
  readonly rpc?: RpcOptions;
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
  /** The attempt is lost: a peer broke, or a slot's thread ended without a goodbye. Called at most once. */
  readonly onBroken?: (error: MillraceError) => void;
}

export interface ExchangeStats {
  readonly queuedBytes: number;
  readonly framesIn: number;
  readonly framesOut: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** HTTP/2 window of a pulled stream: wide, for the credits of the channels bound what is under way. */
const streamWindowBytes = 4 * 1024 * 1024;
const leaveTimeoutMs = 2000;

interface Peer {
  readonly layout: ExchangePeer;
  readonly pull: UpstreamPull;
  readonly feed: DownstreamFeed;
}

/**
 * The exchange of one attempt in the runner's main thread. It makes the ports of every local slot and stands in for
 * the slots of other runners: it pulls one stream from each of them and feeds the stream that each of them pulls here.
 * It holds no frame that credit does not allow, and decides nothing: order is that of ports and streams.
 *
 * Life: construct → `ports(slot)` for each slot's worker → register with the `RunnerServer` → `open()` → `close(reason?)`.
 */
export class ExchangeBridge {
  readonly #options: ExchangeOptions;
  /** For the slots' workers: slot → peer slot → port. */
  readonly #slotPorts = new Map<number, Map<number, MessagePort>>();
  /** This thread's ends: local slot → slot of another runner → port. */
  readonly #bridgePorts = new Map<number, Map<number, MessagePort>>();
  readonly #peers = new Map<string, Peer>();
  readonly #leftSlots = new Set<number>();
  readonly #gauges: (() => void)[];
  #framesIn = 0;
  #framesOut = 0;
  #bytesIn = 0;
  #bytesOut = 0;
  #closed = false;
  #broken = false;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    const { slots, peers } = options.layout;
    for (const slot of slots) {
      this.#slotPorts.set(slot, new Map());
      this.#bridgePorts.set(slot, new Map());
    }
    for (const [i, a] of slots.entries()) for (const b of slots.slice(i + 1)) this.#joinLocal(a, b);
    for (const layout of peers) {
      const peer = this.#makePeer(layout);
      this.#peers.set(layout.runnerId, peer);
      for (const local of slots) for (const remote of layout.slots) this.#joinRemote(local, remote, peer);
    }
    this.#gauges = this.#registerGauges();
  }

  /**
   * The ports of a local slot by peer slot: for its worker's `PortTransport`, by `workerData` and `transferList`. Each
   * port can be given away once.
   */
  ports(slot: number): ReadonlyMap<number, MessagePort> {
    const ports = this.#slotPorts.get(slot);
    assert(ports !== undefined, `exchange: slot ${slot} is not of this runner`);
    return ports;
  }

  /** Starts pulling. Resolves when every peer has accepted; a peer that never does breaks the attempt instead. */
  async open(): Promise<void> {
    await Promise.all([...this.#peers.values()].map((peer) => peer.pull.open()));
  }

  /** A runner of the attempt pulls from here. Throws a MillraceError when it may not. */
  accept(puller: string, stream: PullStream): void {
    const { job, generation } = this.#options;
    if (this.#closed) throw new MillraceError('attempt-unknown', `generation ${generation} of ${job} has ended here`);
    const peer = this.#peers.get(puller);
    if (peer === undefined) {
      throw new MillraceError('runner-mismatch', `runner ${puller} has no part in generation ${generation} of ${job}`);
    }
    peer.feed.attach(stream);
  }

  /**
   * Ends the exchange. Without a reason all local slots must have finished; peers take the end as order, and what is
   * still queued leaves first. With a reason the peers' slots learn of it as broken. Idempotent.
   */
  async close(reason?: unknown): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const stop of this.#gauges) stop();
    const error = reason === undefined ? undefined : MillraceError.from(reason);
    for (const { feed, pull } of this.#peers.values()) {
      feed.close(error);
      if (error === undefined) pull.leave();
      else pull.close();
    }
    this.#tellSlots(error === undefined ? { kind: 'bye' } : { kind: 'broken', error: errorToJson(error) });
    for (const ports of this.#bridgePorts.values()) for (const port of ports.values()) port.close();
    if (error === undefined) await this.#peersEnd();
    for (const { pull } of this.#peers.values()) pull.close();
  }

  stats(): ExchangeStats {
    let queuedBytes = 0;
    for (const { feed } of this.#peers.values()) queuedBytes += feed.queuedBytes;
    return {
      queuedBytes,
      framesIn: this.#framesIn,
      framesOut: this.#framesOut,
      bytesIn: this.#bytesIn,
      bytesOut: this.#bytesOut,
    };
  }

  #joinLocal(a: number, b: number): void {
    const { port1, port2 } = new MessageChannel();
    this.#slotPorts.get(a)?.set(b, port1);
    this.#slotPorts.get(b)?.set(a, port2);
  }

  #joinRemote(local: number, remote: number, peer: Peer): void {
    const { port1, port2 } = new MessageChannel();
    this.#slotPorts.get(local)?.set(remote, port1);
    this.#bridgePorts.get(local)?.set(remote, port2);
    port2.on('message', (message: PortMessage) => this.#fromSlot(local, remote, peer, message));
    port2.on('close', () => {
      if (this.#closed || this.#leftSlots.has(local)) return;
      this.#break(new MillraceError('exchange-broken', `the thread of slot ${local} ended without a goodbye`));
    });
  }

  #makePeer(layout: ExchangePeer): Peer {
    const { job, generation, runnerId, channelWindowBytes, clock, random, connectTimeoutMs = 60_000 } = this.#options;
    const onBroken = (error: MillraceError): void => this.#break(error);
    const rpc = { windowBytes: streamWindowBytes, ...this.#options.rpc };
    return {
      layout,
      feed: new DownstreamFeed(layout.runnerId, channelWindowBytes, {
        onCredit: ({ fromSlot, toSlot, edge, bytes }) => {
          const port = this.#bridgePorts.get(fromSlot)?.get(toSlot);
          if (port !== undefined) post(port, { kind: 'credit', edge, bytes });
        },
        onBroken,
      }),
      pull: new UpstreamPull(
        { peer: layout, job, generation, runnerId, connectTimeoutMs, rpc, clock, random },
        {
          onFrame: (frame) => this.#toSlot(layout, frame),
          onBroken,
          onLeft: () => this.#peerLeft(layout),
        },
      ),
    };
  }

  #fromSlot(local: number, remote: number, peer: Peer, message: PortMessage): void {
    if (this.#closed) return;
    switch (message.kind) {
      case 'frame':
        this.#framesOut++;
        this.#bytesOut += message.frame.byteLength;
        return peer.feed.send({ fromSlot: local, toSlot: remote, edge: message.edge, payload: message.frame });
      case 'credit':
        return peer.pull.grant(remote, local, message.edge, message.bytes);
      case 'bye':
        this.#leftSlots.add(local);
        return;
      case 'broken':
        this.#leftSlots.add(local);
        return this.#break(new MillraceError('exchange-broken', `slot ${local} failed: ${message.error.message}`));
    }
  }

  #toSlot(peer: ExchangePeer, frame: RawFrame): void {
    const port = this.#bridgePorts.get(frame.toSlot)?.get(frame.fromSlot);
    if (port === undefined || !peer.slots.includes(frame.fromSlot)) {
      const text = `runner ${peer.runnerId} sent a frame of slot ${frame.fromSlot} for slot ${frame.toSlot}`;
      return this.#break(new MillraceError('runner-mismatch', text));
    }
    this.#framesIn++;
    this.#bytesIn += frame.payload.byteLength;
    postFrame(port, frame.edge, frame.payload as Uint8Array<ArrayBuffer>);
  }

  #peerLeft(peer: ExchangePeer): void {
    this.#options.telemetry.log.debug('a runner finished its slots', { runner: peer.runnerId });
    for (const ports of this.#bridgePorts.values()) {
      for (const slot of peer.slots) {
        const port = ports.get(slot);
        if (port !== undefined) post(port, { kind: 'bye' });
      }
    }
  }

  /** The attempt cannot go on without one peer or slot, so everything ends: local slots, and the other runners' streams. */
  #break(error: MillraceError): void {
    if (this.#closed || this.#broken) return;
    this.#broken = true;
    this.#options.telemetry.log.warn('the exchange broke', { error });
    void this.close(error); // with a reason it waits for nothing and cannot fail
    this.#options.onBroken?.(error);
  }

  #tellSlots(message: PortMessage): void {
    for (const ports of this.#bridgePorts.values()) for (const port of ports.values()) post(port, message);
  }

  /** Waits for the peers' ends of the streams we leave in order, for a bounded time. */
  async #peersEnd(): Promise<void> {
    const { clock } = this.#options;
    const giveUpMs = clock.monotonicMs() + leaveTimeoutMs;
    const peers = [...this.#peers.values()];
    while (peers.some(({ pull }) => !pull.ended) && clock.monotonicMs() < giveUpMs) await sleep(clock, 10);
  }

  #registerGauges(): (() => void)[] {
    const { telemetry, job } = this.#options;
    const gauge = (name: string, help: string, read: (stats: ExchangeStats) => number): (() => void) =>
      telemetry.metrics.gauge(name, help, () => read(this.stats()), { job });
    return [
      gauge('millrace_exchange_queued_bytes', 'Bytes that wait here for other runners', (s) => s.queuedBytes),
      gauge('millrace_exchange_in_bytes', 'Bytes taken from other runners in this attempt', (s) => s.bytesIn),
      gauge('millrace_exchange_out_bytes', 'Bytes given to other runners in this attempt', (s) => s.bytesOut),
    ];
  }
}
