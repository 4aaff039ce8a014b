import type { ByteReader, ByteWriter } from '@millrace/kernel';

const scratch = new DataView(new ArrayBuffer(8));
const canonicalNaN = 0x7ff8_0000;

/**
 * A number in 8 bytes whose byte order is the order of numbers: IEEE 754 with the sign bit flipped for positives and
 * all bits for negatives. −0 is written as 0, and every NaN alike, after Infinity.
 */
export function writeOrderedNumber(writer: ByteWriter, value: number): void {
  writer.reserve(8);
  const { view, position } = writer;
  view.setFloat64(position, value === 0 ? 0 : value);
  if (Number.isNaN(value)) {
    view.setUint32(position, canonicalNaN);
    view.setUint32(position + 4, 0);
  }
  const high = view.getUint32(position);
  if (high >= 0x8000_0000) {
    view.setUint32(position, ~high >>> 0);
    view.setUint32(position + 4, ~view.getUint32(position + 4) >>> 0);
  } else {
    view.setUint32(position, (high | 0x8000_0000) >>> 0);
  }
  writer.position = position + 8;
}

export function readOrderedNumber(reader: ByteReader): number {
  const high = reader.view.getUint32(reader.position);
  const low = reader.view.getUint32(reader.position + 4);
  reader.position += 8;
  const positive = high >= 0x8000_0000;
  scratch.setUint32(0, positive ? high & 0x7fff_ffff : ~high >>> 0);
  scratch.setUint32(4, positive ? low : ~low >>> 0);
  return scratch.getFloat64(0);
}
