import type { Codec } from '@millrace/state';
import { ChannelCapture } from './channel-capture.ts';
import type { ElementKind } from './elements.ts';
import type { Barrier } from './slot.ts';

/** What a channel tells its task. */
export interface Wakeable {
  /** There may be something to do. Cheap when it is known already. */
  wake(): void;
}

/** The task that reads a channel. */
export interface Consumer extends Wakeable {
  /** A barrier has come in, behind whatever waits in the channel. */
  announced(barrier: Barrier): void;
}

/** What is read element by element, and what the gate knows about it. */
export abstract class ReadableChannel {
  /** Which input of the task's head. */
  readonly input: number;
  watermarkMs = Number.NEGATIVE_INFINITY;
  idle = false;
  /** The `end` was read; only barriers can follow. */
  ended = false;
  /** Not to be read: its barrier was read and others' are awaited, or too much of it has been copied. */
  blocked = false;
  /** The element that `advance` read last. */
  value: unknown = undefined;
  timestampMs = 0;

  constructor(input: number) {
    this.input = input;
  }

  abstract get available(): boolean;
  /** Reads the next element into `value` and `timestampMs`; `none` when there is none. */
  abstract advance(): ElementKind;
}

/** One channel as its reader sees it. */
export abstract class InputChannel extends ReadableChannel {
  readonly edge: number;
  readonly fromSlot: number;
  /** The newest barrier that has come in, whether or not it was read. */
  arrived = Number.NEGATIVE_INFINITY;
  protected capture: ChannelCapture | undefined;

  constructor(edge: number, input: number, fromSlot: number) {
    super(input);
    this.edge = edge;
    this.fromSlot = fromSlot;
  }

  /**
   * Copies every element that waits here before the barrier `checkpoint`, and what comes in before it, for `done`. An
   * element is read all the same. When the barrier is long in coming, the channel is not read on, so that its credit
   * bounds the copy, too.
   */
  beginCapture(checkpoint: number, done: (elements: Uint8Array) => void): void {
    const capture = new ChannelCapture(checkpoint, this.codec, this, done);
    this.copyWaiting(capture);
    if (this.arrived >= checkpoint) return capture.finish();
    this.capture = capture;
    this.#limit(capture);
  }

  /** Rounds up to `checkpoint` were given up, or its barrier is there. */
  cancelCapture(checkpoint: number): void {
    if (this.capture === undefined || this.capture.checkpoint > checkpoint) return;
    this.capture = undefined;
    this.blocked = false;
  }

  abstract readonly codec: Codec<never>;
  protected abstract readonly captureBytesMax: number;
  protected abstract copyWaiting(capture: ChannelCapture): void;

  /** `barrier` has come in. */
  protected barrierArrived(barrier: Barrier, consumer: Consumer): void {
    this.arrived = Math.max(this.arrived, barrier.checkpoint);
    const { capture } = this;
    if (capture !== undefined && barrier.checkpoint >= capture.checkpoint) {
      this.cancelCapture(barrier.checkpoint);
      if (barrier.checkpoint === capture.checkpoint) capture.finish();
    }
    consumer.announced(barrier);
  }

  protected capturedMore(capture: ChannelCapture): void {
    this.#limit(capture);
  }

  #limit(capture: ChannelCapture): void {
    if (capture.bytes >= this.captureBytesMax) this.blocked = true;
  }
}
