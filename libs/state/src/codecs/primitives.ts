import { ByteSlab, MillraceError } from '@millrace/kernel';
import type { Codec } from '../codec.ts';
import { refuse } from './refuse.ts';

/**
 * Safe integers, 1 to 8 bytes: sign and the low six bits of the magnitude in the first byte, the rest as a varint.
 * Refuses other numbers: use `float64` for fractions and `string` or `msgpack` for bigints.
 */
export const int64: Codec<number> = {
  format: 'int64',
  encode(value, writer) {
    if (!Number.isSafeInteger(value)) throw refuse('int64', value);
    const negative = value < 0;
    const magnitude = negative ? -value : value;
    const low = ((magnitude % 64) << 1) | (negative ? 1 : 0);
    if (magnitude < 64) {
      writer.u8(low);
    } else {
      writer.u8(low | 0x80);
      writer.varint(Math.floor(magnitude / 64));
    }
  },
  decode(reader) {
    const first = reader.u8();
    let magnitude = (first >> 1) & 0x3f;
    if (first > 0x7f) magnitude += reader.varint() * 64;
    return first & 1 ? -magnitude : magnitude;
  },
};

/** Any number, 8 bytes; keeps −0, NaN and the infinities. */
export const float64: Codec<number> = {
  format: 'float64',
  encode(value, writer) {
    if (typeof value !== 'number') throw refuse('float64', value);
    writer.f64le(value);
  },
  decode: (reader) => reader.f64le(),
  decoderOf: (stored) => (reader) => (stored === int64.format ? int64 : float64).decode(reader),
};

export const bool: Codec<boolean> = {
  format: 'bool',
  encode(value, writer) {
    if (typeof value !== 'boolean') throw refuse('bool', value);
    writer.u8(value ? 1 : 0);
  },
  decode: (reader) => reader.u8() !== 0,
};

/** UTF-8 with its length. Lone surrogates become U+FFFD (keys keep them: see `keyCodec`). */
export const string: Codec<string> = {
  format: 'string',
  encode(value, writer) {
    if (typeof value !== 'string') throw refuse('string', value);
    const start = writer.position;
    // Most strings are short: leave one byte for the length, and move the text only when it needs more.
    writer.u8(0);
    writer.utf8(value);
    const length = writer.position - start - 1;
    if (length < 0x80) {
      writer.bytes[start] = length;
      return;
    }
    const lengthBytes = length < 0x4000 ? 2 : length < 0x20_0000 ? 3 : length < 0x1000_0000 ? 4 : 5;
    writer.reserve(lengthBytes - 1);
    writer.bytes.copyWithin(start + lengthBytes, start + 1, start + 1 + length);
    writer.position = start;
    writer.varint(length);
    writer.position += length;
  },
  decode: (reader) => reader.utf8(reader.varint()),
};

const copies = new ByteSlab();

/** Byte strings. Short ones that are decoded one after the other share a piece of memory. */
export const bytes: Codec<Uint8Array> = {
  format: 'bytes',
  encode(value, writer) {
    if (!(value instanceof Uint8Array)) throw refuse('bytes', value);
    writer.varint(value.length);
    writer.raw(value);
  },
  decode(reader) {
    const length = reader.varint();
    const start = reader.skip(length);
    return copies.copy(reader.bytes, start, start + length);
  },
};

const jsonCodec: Codec<unknown> = {
  format: 'json',
  encode(value, writer) {
    const text = JSON.stringify(value) as string | undefined;
    if (text === undefined) throw refuse('json', value);
    string.encode(text, writer);
  },
  decode(reader) {
    const text = string.decode(reader);
    try {
      return JSON.parse(text) as unknown;
    } catch (cause) {
      throw new MillraceError('invariant-broken', 'stored JSON cannot be parsed', { cause });
    }
  },
};

/** What JSON keeps of a value: readable in any tool, larger and slower than the others. */
export function json<T = unknown>(): Codec<T> {
  return jsonCodec as Codec<T>;
}
