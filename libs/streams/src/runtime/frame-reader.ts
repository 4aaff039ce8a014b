import { assert, ByteReader } from '@millrace/kernel';
import type { Codec } from '@millrace/state';
import { type ElementKind, elementKind } from './elements.ts';
import type { Barrier } from './slot.ts';

/** Reads the elements of a frame (FRAMES.md) one by one, each into `value` and `timestampMs`. */
export class FrameReader {
  value: unknown = undefined;
  timestampMs = 0;
  readonly #codec: Codec<unknown>;
  readonly #in = new ByteReader(new Uint8Array(0));

  constructor(codec: Codec<never>) {
    this.#codec = codec as Codec<unknown>;
  }

  get done(): boolean {
    return this.#in.position === this.#in.end;
  }

  /** Bytes of the frame that have been read. */
  get position(): number {
    return this.#in.position;
  }

  start(frame: Uint8Array): void {
    this.#in.reset(frame);
  }

  next(): ElementKind {
    const input = this.#in;
    if (input.position === input.end) return elementKind.none;
    const kind = input.u8();
    switch (kind) {
      case elementKind.record: {
        this.timestampMs = input.f64le();
        const length = input.u32le();
        const frameEnd = input.end;
        const valueEnd = input.position + length;
        assert(valueEnd <= frameEnd, 'a record runs over the end of its frame');
        input.end = valueEnd;
        this.value = this.#codec.decode(input);
        input.position = valueEnd;
        input.end = frameEnd;
        return kind;
      }
      case elementKind.watermark:
        this.timestampMs = input.f64le();
        return kind;
      case elementKind.status:
        this.value = input.u8() === 1;
        return kind;
      case elementKind.barrier:
        this.value = readBarrier(input);
        return kind;
      case elementKind.end:
      case elementKind.replayed:
        return kind;
      default:
        assert(false, `unknown element kind ${kind} in a frame`);
    }
  }
}

/** The barrier that is the only element of `frame`; undefined for other frames. A barrier always has its own frame. */
export function barrierOf(frame: Uint8Array): Barrier | undefined {
  return frame[0] === elementKind.barrier ? readBarrier(new ByteReader(frame, 1)) : undefined;
}

function readBarrier(input: ByteReader): Barrier {
  const checkpoint = input.f64le();
  const overtakeAfterMs = input.f64le();
  const parent = input.utf8(input.u8());
  return {
    checkpoint,
    parent: parent === '' ? undefined : parent,
    overtakeAfterMs: overtakeAfterMs === Number.POSITIVE_INFINITY ? undefined : overtakeAfterMs,
  };
}
