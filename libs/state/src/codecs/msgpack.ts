import { Packr } from 'msgpackr';
import type { Codec } from '../codec.ts';

/**
 * Records, not maps, for plain objects: that is what lets a `Map` come back as a Map. Each value defines its own
 * records, so it is readable by itself. `moreTypes` keeps Set and typed arrays.
 */
const packr = new Packr({ useRecords: true, moreTypes: true, copyBuffers: true });

const codec: Codec<unknown> = {
  format: 'msgpack',
  encode(value, writer) {
    const packed = packr.pack(value);
    writer.varint(packed.length);
    writer.raw(packed);
  },
  decode(reader) {
    const length = reader.varint();
    // A view is safe: binary fields are copied out of it.
    return packr.unpack(reader.raw(length)) as unknown;
  },
};

/** The default codec: any structured value, self-describing. `struct` is smaller, faster, and checked at a restore. */
export function msgpack<T = unknown>(): Codec<T> {
  return codec as Codec<T>;
}
