import { combinedWatermark } from './combined-watermark.ts';
import type { InputChannel, ReadableChannel } from './input-channel.ts';
import type { RestoreStages } from './restore-stages.ts';
import type { Barrier } from './slot.ts';

/** What one channel held when a barrier overtook it. */
export interface Captured {
  readonly channel: InputChannel;
  readonly watermarkMs: number;
  readonly idle: boolean;
  readonly elements: Uint8Array;
}

/** What a task reads before its channels: those of the attempt that its checkpoint was taken in. */
export interface Replay {
  readonly channels: readonly ReadableChannel[];
  /** Event time goes no further than this meanwhile: other subtasks replay channels that had come this far. */
  readonly watermarkMsMax: number;
}

/**
 * What a task knows about its channels: which to read next, the watermark and status over all of them, and the
 * alignment of the barrier in hand.
 *
 * Watermark: the smallest of the active channels. When all are idle it is the largest of them, so that the result does
 * not depend on which went idle first. Ended channels hold nothing back. It never falls.
 */
export class InputGate {
  readonly channels: readonly InputChannel[];
  /** The channels that are read now. */
  #readable: readonly ReadableChannel[];
  #replay: Replay | undefined;
  /** Channels that have delivered the mark of this stage of a restore; undefined when all stages are over. */
  #replayed: Set<ReadableChannel> | undefined;
  #stages: RestoreStages | undefined;
  #stage = 0;
  watermarkMs = Number.NEGATIVE_INFINITY;
  idle = false;
  ended = false;
  /** The barrier being aligned. */
  barrier: Barrier | undefined;
  alignStartMs = 0;
  #cursor = 0;

  constructor(channels: readonly InputChannel[]) {
    this.channels = channels;
    this.#readable = channels;
  }

  /** The next channel to read, in turn; undefined when there is none. */
  pick(): ReadableChannel | undefined {
    const channel = this.#pick();
    if (channel !== undefined || this.#replay === undefined) return channel;
    this.#replay = undefined;
    this.#readable = this.channels;
    this.#cursor = 0;
    return this.#pick();
  }

  #pick(): ReadableChannel | undefined {
    const count = this.#readable.length;
    for (let i = 0; i < count; i++) {
      const at = this.#cursor;
      this.#cursor = at + 1 === count ? 0 : at + 1;
      const channel = this.#readable[at] as ReadableChannel;
      if (!channel.blocked && channel.available) return channel;
    }
    return undefined;
  }

  /**
   * To be called before the first `pick`: `replay` is read before anything else, and no channel is read beyond one of its
   * `replayed` marks before all have delivered it. Event time goes on from where it was for the replayed channels.
   */
  restore(replay: Replay, stages: RestoreStages): void {
    this.#replayed = new Set();
    this.#stages = stages;
    if (replay.channels.length === 0) return;
    this.#replay = replay;
    this.#readable = replay.channels;
    this.watermarkMs = this.#combinedWatermark();
  }

  /** Something restored may still come. */
  get restoring(): boolean {
    return this.#replayed !== undefined;
  }

  /**
   * `channel` has delivered the `replayed` mark of a stage. When it was the last one, all channels go on. True when the
   * mark is to be passed on: those of the stages before this gate's own have been sent.
   */
  replayed(channel: ReadableChannel): boolean {
    channel.blocked = true;
    if (this.#replayed?.add(channel).size !== this.channels.length) return false;
    for (const one of this.channels) one.blocked = false;
    const { count = 1, inputs = 0 } = this.#stages ?? {};
    const stage = this.#stage++;
    this.#replayed = this.#stage < count ? new Set() : undefined;
    return stage >= inputs;
  }

  /**
   * The snapshot of the unaligned checkpoint is being taken: copies what its barrier overtakes in every channel. Resolves
   * when all barriers are there; never, when the round is given up.
   */
  capture(checkpoint: number): Promise<readonly Captured[]> {
    const isRead = this.barrier?.checkpoint === checkpoint;
    const read = this.channels.filter((channel) => channel.ended || (isRead && channel.blocked));
    this.release();
    return Promise.all(this.channels.map((channel) => this.#capture(channel, checkpoint, read.includes(channel))));
  }

  async #capture(channel: InputChannel, checkpoint: number, isRead: boolean): Promise<Captured> {
    const watermarkMs = channel.ended ? Number.POSITIVE_INFINITY : channel.watermarkMs;
    const before = { channel, watermarkMs, idle: channel.idle };
    if (isRead) return { ...before, elements: nothing };
    return new Promise((resolve) => channel.beginCapture(checkpoint, (elements) => resolve({ ...before, elements })));
  }

  /** Rounds up to `checkpoint` were given up. */
  cancelCapture(checkpoint: number): void {
    for (const channel of this.channels) channel.cancelCapture(checkpoint);
  }

  /** True when the watermark over all channels has risen. */
  updateWatermark(): boolean {
    const watermarkMs = this.#combinedWatermark();
    if (watermarkMs <= this.watermarkMs) return false;
    this.watermarkMs = watermarkMs;
    return true;
  }

  /** True when the status over all channels has changed. */
  updateStatus(): boolean {
    if (this.#replay !== undefined) return false;
    let open = 0;
    let active = 0;
    for (const channel of this.channels) {
      if (channel.ended) continue;
      open++;
      if (!channel.idle) active++;
    }
    const idle = open > 0 && active === 0;
    if (idle === this.idle) return false;
    this.idle = idle;
    return true;
  }

  /** `channel` is at its end. True when it was the last one. */
  end(channel: ReadableChannel): boolean {
    channel.ended = true;
    this.ended = this.channels.every((one) => one.ended);
    return this.ended;
  }

  /**
   * `channel` is at `barrier`. A newer barrier than the one in hand means that the older one was given up: its
   * channels go on. Ended channels need not deliver one.
   */
  arrive(channel: ReadableChannel, barrier: Barrier, nowMs: number): void {
    if (this.barrier !== undefined && this.barrier.checkpoint < barrier.checkpoint) this.release();
    if (this.barrier === undefined) {
      this.barrier = barrier;
      this.alignStartMs = nowMs;
    }
    channel.blocked = true;
  }

  /** True when no channel can deliver records that belong before the barrier in hand. */
  get aligned(): boolean {
    return this.barrier !== undefined && this.channels.every((one) => one.blocked || one.ended);
  }

  /** Done with the barrier in hand: every channel goes on. */
  release(): void {
    this.barrier = undefined;
    for (const channel of this.channels) channel.blocked = false;
  }

  #combinedWatermark(): number {
    const mergedMs = combinedWatermark(this.#readable);
    return this.#replay === undefined ? mergedMs : Math.min(mergedMs, this.#replay.watermarkMsMax);
  }
}

const nothing = new Uint8Array(0);
