import type { MaybePromise, Timer } from '@millrace/kernel';
import type { Codec } from '@millrace/state';
import { elementKind } from './elements.ts';
import { barrierOf } from './frame-reader.ts';
import { FrameWriter } from './frame-writer.ts';
import { nothingOvertaken, type OutputChannel, type Producer } from './output-channel.ts';
import type { Barrier } from './slot.ts';
import type { SlotTransport } from './transport.ts';

/** Sees to it that what waits in an output waits no longer than it may. */
export interface OutputTimer {
  /** A partial frame has begun: `flush` is to be called within the frame delay. */
  begun(output: RemoteOutput): void;
  /** Calls back once after `delayMs`, unless the slot ends before. */
  after(delayMs: number, callback: () => void): Timer;
}

type Frame = Uint8Array<ArrayBuffer>;

/** A barrier that waits for credit behind other frames, for a limited time. */
interface LateBarrier {
  readonly barrier: Barrier;
  readonly timer: Timer;
  readonly settle: (overtaken: Uint8Array) => void;
}

/** The writing end of a channel to another slot: packs frames and sends them while there is credit. */
export class RemoteOutput implements OutputChannel {
  readonly toSlot: number;
  readonly #frame: FrameWriter;
  readonly #edge: number;
  readonly #transport: SlotTransport;
  readonly #producer: Producer;
  readonly #timer: OutputTimer;
  readonly #frameBytes: number;
  readonly #frameDelayMs: number;
  #creditBytes = 0;
  /** Frames without credit. */
  #waiting: Frame[] = [];
  #late: LateBarrier | undefined;
  #lastPartialMs = Number.NEGATIVE_INFINITY;

  constructor(
    place: { edge: number; toSlot: number },
    codec: Codec<never>,
    wiring: {
      transport: SlotTransport;
      producer: Producer;
      timer: OutputTimer;
      frameBytes: number;
      frameDelayMs: number;
    },
  ) {
    this.#frame = new FrameWriter(codec, wiring.frameBytes);
    this.toSlot = place.toSlot;
    this.#edge = place.edge;
    this.#transport = wiring.transport;
    this.#producer = wiring.producer;
    this.#timer = wiring.timer;
    this.#frameBytes = wiring.frameBytes;
    this.#frameDelayMs = wiring.frameDelayMs;
  }

  onCredit(bytes: number): void {
    this.#creditBytes += bytes;
    if (this.#waiting.length === 0) return;
    while (this.#waiting.length > 0 && this.#creditBytes > 0) this.#send(this.#waiting.shift() as Frame);
    this.#unblock();
  }

  record(value: unknown, timestampMs: number): void {
    if (this.#frame.bytes === 0) this.#timer.begun(this);
    this.#frame.record(value, timestampMs);
    if (this.#frame.bytes >= this.#frameBytes) this.flush();
  }

  watermark(watermarkMs: number): void {
    if (this.#frame.bytes === 0) this.#timer.begun(this);
    this.#frame.watermark(watermarkMs);
    if (watermarkMs === Number.POSITIVE_INFINITY) this.flush();
  }

  status(idle: boolean): void {
    if (this.#frame.bytes === 0) this.#timer.begun(this);
    this.#frame.status(idle);
  }

  /**
   * A barrier leaves in a frame of its own. One that may overtake is sent before the frames that wait, without asking
   * for credit: it is small, and there is at most one for each round.
   */
  barrier(barrier: Barrier): MaybePromise<Uint8Array> {
    this.flush();
    this.#late?.timer.cancel();
    this.#late = undefined;
    const { overtakeAfterMs } = barrier;
    if (overtakeAfterMs === 0 && !this.#replayWaits()) {
      const overtaken = packed(this.#waiting);
      this.#send(this.#barrierFrame(barrier));
      return overtaken;
    }
    this.#frame.barrier(barrier);
    this.flush();
    if (this.#waiting.length === 0 || overtakeAfterMs === undefined || this.#replayWaits()) return nothingOvertaken;
    return new Promise((settle) => {
      const timer = this.#timer.after(overtakeAfterMs, () => this.#overtake());
      this.#late = { barrier, timer, settle };
    });
  }

  replayed(): void {
    this.flush();
    this.#frame.replayed();
    this.flush();
  }

  end(): void {
    this.#frame.end();
    this.flush();
  }

  flushIdle(nowMs: number): void {
    if (this.#frame.bytes === 0 || nowMs - this.#lastPartialMs < this.#frameDelayMs) return;
    this.#lastPartialMs = nowMs;
    this.flush();
  }

  flush(): void {
    if (this.#frame.bytes === 0) return;
    const frame = this.#frame.take();
    if (this.#creditBytes > 0 && this.#waiting.length === 0) this.#send(frame);
    else if (this.#waiting.push(frame) === 1) this.#producer.blockers++;
  }

  /** The barrier has waited long enough. */
  #overtake(): void {
    const late = this.#late;
    const at = this.#waiting.findIndex((frame) => barrierOf(frame)?.checkpoint === late?.barrier.checkpoint);
    if (late === undefined || at < 0) return;
    this.#late = undefined;
    this.#waiting.splice(at, 1);
    const overtaken = packed(this.#waiting.slice(0, at));
    this.#send(this.#barrierFrame({ ...late.barrier, overtakeAfterMs: 0 }));
    late.settle(overtaken);
    this.#unblock();
  }

  /** The mark that ends a replay is never overtaken: the reader looks at no barrier before it. */
  #replayWaits(): boolean {
    return this.#waiting.some((frame) => frame[0] === elementKind.replayed);
  }

  #barrierFrame(barrier: Barrier): Frame {
    this.#frame.barrier(barrier);
    return this.#frame.take();
  }

  #unblock(): void {
    if (this.#waiting.length > 0) return;
    this.#producer.blockers--;
    this.#producer.wake();
  }

  #send(frame: Frame): void {
    const late = this.#late;
    if (late !== undefined && barrierOf(frame)?.checkpoint === late.barrier.checkpoint) {
      this.#late = undefined;
      late.timer.cancel();
      late.settle(nothingOvertaken);
    }
    this.#creditBytes -= frame.length;
    this.#transport.send(this.toSlot, this.#edge, frame);
  }
}

/** A copy of the elements of frames, which are given away when they are sent; without barriers. */
function packed(frames: readonly Frame[]): Uint8Array {
  const elements = frames.filter((frame) => frame[0] !== elementKind.barrier);
  return elements.length === 0 ? nothingOvertaken : Buffer.concat(elements);
}
