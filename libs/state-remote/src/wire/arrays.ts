/**
 * Packed arrays as bytes and back, without a copy where memory allows it. The bytes are little-endian, and so is every
 * machine that Node runs on, but for one that nobody has: it is refused.
 */
import { endianness } from 'node:os';
import { assert, MillraceError } from '@millrace/kernel';

assert(endianness() === 'LE', 'packed state travels between little-endian machines only');

/** A plain view: protobuf hands out Buffers, whose `slice` is another thing. */
export function plainView(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** A view of the memory of an array. */
export function bytesOf(array: Uint32Array | Float64Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/** The numbers in `bytes`: a view when they are aligned, else a copy. Throws `bad-argument` when a part is missing. */
export function uint32sOf(bytes: Uint8Array): Uint32Array {
  const { buffer, byteOffset, byteLength } = aligned(bytes, Uint32Array.BYTES_PER_ELEMENT);
  return new Uint32Array(buffer, byteOffset, byteLength / Uint32Array.BYTES_PER_ELEMENT);
}

/** As {@link uint32sOf}. */
export function float64sOf(bytes: Uint8Array): Float64Array {
  const { buffer, byteOffset, byteLength } = aligned(bytes, Float64Array.BYTES_PER_ELEMENT);
  return new Float64Array(buffer, byteOffset, byteLength / Float64Array.BYTES_PER_ELEMENT);
}

function aligned(bytes: Uint8Array, size: number): Uint8Array {
  if (bytes.byteLength % size !== 0) {
    throw new MillraceError('bad-argument', `${bytes.byteLength} bytes are no whole numbers of ${size} bytes`);
  }
  return bytes.byteOffset % size === 0 ? bytes : Uint8Array.from(bytes);
}
