import type { InputChannel } from './input-channel.ts';
import type { Barrier } from './slot.ts';

/**
 * What a task knows about its channels: which to read next, the watermark and status over all of them, and the
 * alignment of the barrier in hand.
 *
 * Watermark: the smallest of the active channels. When all are idle it is the largest of them, so that the result does
 * not depend on which went idle first. Ended channels hold nothing back. It never falls.
 */
export class InputGate {
  readonly channels: readonly InputChannel[];
  watermarkMs = Number.NEGATIVE_INFINITY;
  idle = false;
  ended = false;
  /** The barrier being aligned. */
  barrier: Barrier | undefined;
  alignStartMs = 0;
  #cursor = 0;

  constructor(channels: readonly InputChannel[]) {
    this.channels = channels;
  }

  /** The next channel to read, in turn; undefined when there is none. */
  pick(): InputChannel | undefined {
    const count = this.channels.length;
    for (let i = 0; i < count; i++) {
      const at = this.#cursor;
      this.#cursor = at + 1 === count ? 0 : at + 1;
      const channel = this.channels[at] as InputChannel;
      if (!channel.blocked && channel.available) return channel;
    }
    return undefined;
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
  end(channel: InputChannel): boolean {
    channel.ended = true;
    this.ended = this.channels.every((one) => one.ended);
    return this.ended;
  }

  /**
   * `channel` is at `barrier`. A newer barrier than the one in hand means that the older one was given up: its
   * channels go on. Ended channels need not deliver one.
   */
  arrive(channel: InputChannel, barrier: Barrier, nowMs: number): void {
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
    let smallestActive = Number.POSITIVE_INFINITY;
    let largestIdle = Number.NEGATIVE_INFINITY;
    let active = 0;
    let open = 0;
    for (const channel of this.channels) {
      if (channel.ended) continue;
      open++;
      if (channel.idle) largestIdle = Math.max(largestIdle, channel.watermarkMs);
      else {
        active++;
        smallestActive = Math.min(smallestActive, channel.watermarkMs);
      }
    }
    if (open === 0) return Number.POSITIVE_INFINITY;
    return active > 0 ? smallestActive : largestIdle;
  }
}
