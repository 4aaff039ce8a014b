import type { Codec } from '@millrace/state';
import { type ElementKind, elementKind } from './elements.ts';
import { FrameReader } from './frame-reader.ts';
import { ReadableChannel } from './input-channel.ts';

/** Elements of one channel as a checkpoint keeps them, and where its reader was. */
export interface StoredChannel {
  readonly input: number;
  readonly watermarkMs: number;
  readonly idle: boolean;
  readonly elements: Uint8Array;
  readonly codec: Codec<never>;
  /** Which records are of this subtask; absent: all. */
  readonly keep?: ((value: unknown) => boolean) | undefined;
}

/** A channel of the attempt that a checkpoint was taken in: read to its end before the channels of this one. */
export class ReplayChannel extends ReadableChannel {
  readonly #reader: FrameReader;
  readonly #keep: ((value: unknown) => boolean) | undefined;

  constructor(stored: StoredChannel) {
    super(stored.input);
    this.watermarkMs = stored.watermarkMs;
    this.idle = stored.idle;
    this.#reader = new FrameReader(stored.codec);
    this.#reader.start(stored.elements);
    this.#keep = stored.keep;
  }

  get available(): boolean {
    return !this.#reader.done;
  }

  /**
   * Reads the next record, watermark or status; `none` when no more of these is left. The rest (the end of an input) comes
   * again from whoever sent it.
   */
  advance(): ElementKind {
    const reader = this.#reader;
    for (let kind = reader.next(); kind !== elementKind.none; kind = reader.next()) {
      this.value = reader.value;
      this.timestampMs = reader.timestampMs;
      if (kind === elementKind.watermark || kind === elementKind.status) return kind;
      if (kind === elementKind.record && this.#keep?.(reader.value) !== false) return kind;
    }
    return elementKind.none;
  }
}
