import type { MessagePort } from 'node:worker_threads';
import { assert, errorFromJson, errorToJson, MillraceError } from '@millrace/kernel';
import type { SlotListener, SlotTransport } from '@millrace/streams';
import { channelKey, channelOf } from './channel-key.ts';
import { CreditBatch } from './credit-batch.ts';
import { type PortMessage, post, postFrame } from './port-message.ts';

/**
 * A slot's transport inside its worker thread: one MessagePort per peer slot of the attempt. The other end is in the
 * peer's worker thread or, for a slot of another process, in this process's main thread (`ExchangeBridge`); the slot
 * sees no difference. Frames keep their order per peer. Frames that arrive before `listen` wait in the port.
 */
export class PortTransport implements SlotTransport {
  readonly #ports: ReadonlyMap<number, MessagePort>;
  /** Peers that said goodbye or broke: the closing of their port is no news. */
  readonly #gone = new Set<number>();
  readonly #credits: CreditBatch;
  #closed = false;

  /** `ports`: what `ExchangeBridge.ports(slot)` gave for this slot. */
  constructor(ports: ReadonlyMap<number, MessagePort>) {
    this.#ports = ports;
    this.#credits = new CreditBatch((key, bytes) => {
      const { fromSlot, edge } = channelOf(key);
      post(this.#port(fromSlot), { kind: 'credit', edge, bytes });
    });
  }

  send(toSlot: number, edge: number, frame: Uint8Array<ArrayBuffer>): void {
    postFrame(this.#port(toSlot), edge, frame);
  }

  grant(fromSlot: number, edge: number, bytes: number): void {
    if (!this.#closed) this.#credits.add(channelKey(fromSlot, 0, edge), bytes);
  }

  listen(listener: SlotListener): void {
    for (const [peer, port] of this.#ports) {
      port.on('message', (message: PortMessage) => this.#receive(listener, peer, message));
      port.on('close', () => {
        this.#break(listener, peer, new MillraceError('exchange-broken', `slot ${peer} is gone without a goodbye`));
      });
    }
  }

  /**
   * Leaves the attempt. Without a reason the slot has finished (`last` checkpoint) and its peers take that as order;
   * with one, every peer's `onBroken` is called with it. Idempotent. The thread can end afterwards.
   */
  close(reason?: unknown): void {
    if (this.#closed) return;
    this.#credits.flush();
    this.#closed = true;
    const last: PortMessage =
      reason === undefined ? { kind: 'bye' } : { kind: 'broken', error: errorToJson(MillraceError.from(reason)) };
    for (const [peer, port] of this.#ports) {
      this.#gone.add(peer);
      post(port, last);
      port.close();
    }
  }

  #receive(listener: SlotListener, peer: number, message: PortMessage): void {
    if (this.#closed) return;
    switch (message.kind) {
      case 'frame':
        return listener.onFrame(peer, message.edge, message.frame);
      case 'credit':
        return listener.onCredit(peer, message.edge, message.bytes);
      case 'broken':
        return this.#break(listener, peer, errorFromJson(message.error));
      case 'bye':
        this.#gone.add(peer);
    }
  }

  #break(listener: SlotListener, peer: number, reason: Error): void {
    if (this.#gone.has(peer)) return;
    this.#gone.add(peer);
    listener.onBroken(peer, reason);
  }

  #port(peer: number): MessagePort {
    const port = this.#ports.get(peer);
    assert(port !== undefined, `transport: no port to slot ${peer}`);
    return port;
  }
}
