import { ByteWriter, MillraceError } from '@millrace/kernel';
import type { Codec } from '@millrace/state';
import { elementKind } from './elements.ts';
import type { Barrier } from './slot.ts';

/** The largest record that may travel between threads: a frame holds at least one record whole. */
const recordBytesMax = 16 * 1024 * 1024;

/** Bytes of a record before its value: kind, timestamp, length. */
const recordHeadBytes = 13;
const watermarkBytes = 9;

/** Packs elements of one channel into frames (FRAMES.md). Values are encoded straight into the frame. */
export class FrameWriter {
  readonly #out: ByteWriter;
  readonly #codec: Codec<unknown>;
  /** Where the frame ends if its last element is a watermark, which a newer one may then overwrite. */
  #watermarkEnd = -1;

  constructor(codec: Codec<never>, frameBytes: number) {
    this.#codec = codec as Codec<unknown>;
    this.#out = new ByteWriter(frameBytes + 1024);
  }

  get bytes(): number {
    return this.#out.position;
  }

  record(value: unknown, timestampMs: number): void {
    const out = this.#out;
    const start = out.position;
    out.reserve(recordHeadBytes);
    out.bytes[start] = elementKind.record;
    out.view.setFloat64(start + 1, timestampMs, true);
    const valueStart = start + recordHeadBytes;
    out.position = valueStart;
    try {
      this.#codec.encode(value, out);
    } catch (error) {
      out.position = start;
      throw error;
    }
    const length = out.position - valueStart;
    if (length > recordBytesMax) {
      out.position = start;
      throw new MillraceError('record-too-large', `a record of ${length} bytes; the limit is ${recordBytesMax}`);
    }
    out.view.setUint32(start + 9, length, true);
  }

  watermark(watermarkMs: number): void {
    const out = this.#out;
    if (out.position === this.#watermarkEnd) out.position -= watermarkBytes;
    out.u8(elementKind.watermark);
    out.f64le(watermarkMs);
    this.#watermarkEnd = out.position;
  }

  status(idle: boolean): void {
    this.#out.u8(elementKind.status);
    this.#out.u8(idle ? 1 : 0);
  }

  barrier(barrier: Barrier): void {
    const out = this.#out;
    out.u8(elementKind.barrier);
    out.f64le(barrier.checkpoint);
    out.f64le(barrier.overtakeAfterMs ?? Number.POSITIVE_INFINITY);
    const parent = barrier.parent ?? '';
    const lengthAt = out.position;
    out.u8(0);
    out.utf8(parent.length < 256 ? parent : '');
    out.bytes[lengthAt] = out.position - lengthAt - 1;
  }

  end(): void {
    this.#out.u8(elementKind.end);
  }

  replayed(): void {
    this.#out.u8(elementKind.replayed);
  }

  /** Appends elements that are packed already. */
  packed(elements: Uint8Array): void {
    this.#out.raw(elements);
    this.#watermarkEnd = -1;
  }

  /** The frame so far, as bytes of its own; the writer starts the next one. */
  take(): Uint8Array<ArrayBuffer> {
    const frame = this.#out.bytes.slice(0, this.#out.position) as Uint8Array<ArrayBuffer>;
    this.#out.reset();
    this.#watermarkEnd = -1;
    return frame;
  }
}
