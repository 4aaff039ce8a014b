import type { Random } from '@millrace/kernel';
import { immediateScheduler, type Scheduler } from '../runtime/scheduler.ts';
import type { SlotListener, SlotTransport } from '../runtime/transport.ts';

type Message =
  | { readonly kind: 'frame'; readonly edge: number; readonly frame: Uint8Array }
  | { readonly kind: 'credit'; readonly edge: number; readonly bytes: number };

export interface MemoryNetworkOptions {
  /** With it, each message waits a random number of turns; the order within a pair of slots is kept. */
  readonly random?: Random | undefined;
  readonly scheduler?: Scheduler | undefined;
}

/** Slots of one process joined in memory: frames are handed over in a later turn, as by message ports. */
export class MemoryNetwork {
  readonly #random: Random | undefined;
  readonly #scheduler: Scheduler;
  readonly #listeners = new Map<number, SlotListener>();
  /** Messages of each directed pair of slots. */
  readonly #pairs = new Map<string, { from: number; to: number; queue: Message[] }>();
  #running = false;
  #closed = false;
  /** Credit of each channel as its sender sees it or better: granted minus sent. */
  readonly #creditBytes = new Map<string, number>();
  /** Most bytes that any channel was ever sent beyond its credit: at most one frame in a correct slot. */
  overdrawnBytesMax = 0;

  constructor(options: MemoryNetworkOptions = {}) {
    this.#random = options.random;
    this.#scheduler = options.scheduler ?? immediateScheduler;
  }

  transport(slot: number): SlotTransport {
    return {
      send: (toSlot, edge, frame) => {
        // Transfers, so that a sender that touches its frame again is found out.
        this.#credit(`${slot}>${toSlot}/${edge}`, -frame.length);
        this.#post(slot, toSlot, { kind: 'frame', edge, frame: new Uint8Array(frame.buffer.transfer()) });
      },
      grant: (fromSlot, edge, bytes) => {
        this.#credit(`${fromSlot}>${slot}/${edge}`, bytes);
        this.#post(slot, fromSlot, { kind: 'credit', edge, bytes });
      },
      listen: (listener) => {
        this.#listeners.set(slot, listener);
        this.#run();
      },
    };
  }

  /** Tells every slot but `slot` that it is gone. */
  break(slot: number, reason: Error): void {
    for (const [other, listener] of this.#listeners) if (other !== slot) listener.onBroken(slot, reason);
  }

  close(): void {
    this.#closed = true;
    this.#pairs.clear();
  }

  #credit(channel: string, bytes: number): void {
    const credit = (this.#creditBytes.get(channel) ?? 0) + bytes;
    this.#creditBytes.set(channel, credit);
    this.overdrawnBytesMax = Math.max(this.overdrawnBytesMax, -credit);
  }

  #post(from: number, to: number, message: Message): void {
    if (this.#closed) return;
    const key = `${from}>${to}`;
    let pair = this.#pairs.get(key);
    if (pair === undefined) {
      pair = { from, to, queue: [] };
      this.#pairs.set(key, pair);
    }
    pair.queue.push(message);
    this.#run();
  }

  #run(): void {
    if (this.#running) return;
    this.#running = true;
    this.#scheduler(() => {
      this.#running = false;
      this.#deliver();
    });
  }

  #deliver(): void {
    let waiting = false;
    for (const { from, to, queue } of this.#pairs.values()) {
      const listener = this.#listeners.get(to);
      if (listener === undefined) continue;
      while (queue.length > 0 && (this.#random === undefined || this.#random.below(3) > 0)) {
        const message = queue.shift() as Message;
        if (message.kind === 'frame') listener.onFrame(from, message.edge, message.frame);
        else listener.onCredit(from, message.edge, message.bytes);
      }
      waiting ||= queue.length > 0;
    }
    if (waiting && !this.#closed) this.#run();
  }
}
