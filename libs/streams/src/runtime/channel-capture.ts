import type { Codec } from '@millrace/state';
import { elementKind } from './elements.ts';
import { FrameWriter } from './frame-writer.ts';

/** Copies the elements of one channel that a barrier overtook, from the moment of the snapshot until the barrier is there. */
export class ChannelCapture {
  readonly checkpoint: number;
  /** What the reader knew of event time at the snapshot. */
  readonly watermarkMs: number;
  readonly idle: boolean;
  readonly #writer: FrameWriter;
  readonly #done: (elements: Uint8Array) => void;

  constructor(
    checkpoint: number,
    codec: Codec<never>,
    time: { readonly watermarkMs: number; readonly idle: boolean },
    done: (elements: Uint8Array) => void,
  ) {
    this.checkpoint = checkpoint;
    this.watermarkMs = time.watermarkMs;
    this.idle = time.idle;
    this.#writer = new FrameWriter(codec, 256);
    this.#done = done;
  }

  get bytes(): number {
    return this.#writer.bytes;
  }

  packed(elements: Uint8Array): void {
    this.#writer.packed(elements);
  }

  /** Barriers, the end and marks are those of this attempt; the next one has its own. */
  element(kind: number, value: unknown, timestampMs: number): void {
    if (kind === elementKind.record) this.#writer.record(value, timestampMs);
    else if (kind === elementKind.watermark) this.#writer.watermark(timestampMs);
    else if (kind === elementKind.status) this.#writer.status(value as boolean);
  }

  finish(): void {
    this.#done(this.#writer.take());
  }
}
