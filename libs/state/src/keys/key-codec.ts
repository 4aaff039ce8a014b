import { type ByteReader, type ByteWriter, MillraceError } from '@millrace/kernel';
import type { Codec } from '../codec.ts';
import { readText, writeText } from './key-text.ts';
import type { KeyValue } from './key-value.ts';
import { readOrderedNumber, writeOrderedNumber } from './ordered-number.ts';

/*
 * The canonical bytes of keys: equal keys have equal bytes, different keys different ones. A tag byte says the type
 * and orders the types; within a type, byte order is value order for numbers, bigints, dates, booleans and strings (by
 * code point), and arrays compare item by item. The layout follows the tuple encoding of FoundationDB.
 */
const tags = {
  end: 0x00,
  null: 0x05,
  false: 0x10,
  true: 0x11,
  number: 0x20,
  bigintNegative: 0x28,
  bigint: 0x29,
  date: 0x30,
  string: 0x40,
  bytes: 0x50,
  array: 0x60,
  object: 0x70,
} as const;

const depthMax = 32;

function badKey(what: string): MillraceError {
  return new MillraceError('state-bad-key', `a key cannot be or contain ${what}`);
}

/** Sign in the tag, the number of bytes, the magnitude; inverted for negatives, so that larger magnitudes come first. */
function writeBigint(value: bigint, writer: ByteWriter): void {
  const negative = value < 0n;
  let hex = (negative ? -value : value).toString(16);
  if (hex.length % 2 === 1) hex = `0${hex}`;
  const count = hex.length / 2;
  if (count > 0xffff) throw badKey('a bigint of more than 65535 bytes');
  const flip = negative ? 0xff : 0;
  writer.u8(negative ? tags.bigintNegative : tags.bigint);
  writer.u16be(negative ? 0xffff - count : count);
  for (let i = 0; i < count; i++) writer.u8(Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16) ^ flip);
}

function readBigint(reader: ByteReader, negative: boolean): bigint {
  const count = negative ? 0xffff - reader.u16be() : reader.u16be();
  const flip = negative ? 0xff : 0;
  let hex = '0x';
  for (let i = 0; i < count; i++) hex += (reader.u8() ^ flip).toString(16).padStart(2, '0');
  const magnitude = BigInt(hex);
  return negative ? -magnitude : magnitude;
}

function writeBytes(value: Uint8Array, writer: ByteWriter): void {
  for (let i = 0; i < value.length; i++) {
    const byte = value[i] as number;
    writer.u8(byte);
    if (byte === 0) writer.u8(0xff);
  }
  writer.u8(tags.end);
}

function readBytes(reader: ByteReader): Uint8Array {
  const out: number[] = [];
  for (;;) {
    const byte = reader.u8();
    if (byte === 0) {
      if (reader.remaining === 0 || reader.bytes[reader.position] !== 0xff) return Uint8Array.from(out);
      reader.position++;
    }
    out.push(byte);
  }
}

function writeObject(value: object, writer: ByteWriter, depth: number): void {
  if (depth >= depthMax) throw badKey(`more than ${depthMax} levels`);
  if (Array.isArray(value)) {
    writer.u8(tags.array);
    for (let i = 0; i < value.length; i++) write(value[i] as KeyValue, writer, depth + 1);
  } else if (value instanceof Uint8Array) {
    writer.u8(tags.bytes);
    return writeBytes(value, writer);
  } else if (value instanceof Date) {
    writer.u8(tags.date);
    return writeOrderedNumber(writer, value.getTime());
  } else {
    const prototype = Object.getPrototypeOf(value) as object | null;
    if (prototype !== Object.prototype && prototype !== null) throw badKey(`a ${value.constructor.name}`);
    writer.u8(tags.object);
    for (const field of Object.keys(value).toSorted()) {
      writer.u8(tags.string);
      writeText(field, writer);
      write((value as Record<string, KeyValue>)[field] as KeyValue, writer, depth + 1);
    }
  }
  writer.u8(tags.end);
}

function write(value: KeyValue, writer: ByteWriter, depth: number): void {
  switch (typeof value) {
    case 'string':
      writer.u8(tags.string);
      return writeText(value, writer);
    case 'number':
      writer.u8(tags.number);
      return writeOrderedNumber(writer, value);
    case 'boolean':
      return writer.u8(value ? tags.true : tags.false);
    case 'bigint':
      return writeBigint(value, writer);
    case 'object':
      return value === null ? writer.u8(tags.null) : writeObject(value, writer, depth);
    default:
      throw badKey(`a value of type ${typeof value}`);
  }
}

function read(reader: ByteReader): KeyValue {
  const tag = reader.u8();
  switch (tag) {
    case tags.null:
      return null;
    case tags.false:
      return false;
    case tags.true:
      return true;
    case tags.number:
      return readOrderedNumber(reader);
    case tags.bigint:
      return readBigint(reader, false);
    case tags.bigintNegative:
      return readBigint(reader, true);
    case tags.date:
      return new Date(readOrderedNumber(reader));
    case tags.string:
      return readText(reader);
    case tags.bytes:
      return readBytes(reader);
    case tags.array: {
      const items: KeyValue[] = [];
      while (!atEnd(reader)) items.push(read(reader));
      return items;
    }
    case tags.object: {
      const fields: [string, KeyValue][] = [];
      while (!atEnd(reader)) fields.push([read(reader) as string, read(reader)]);
      return Object.fromEntries(fields);
    }
    default:
      throw new MillraceError('invariant-broken', `key bytes hold an unknown tag ${tag}`);
  }
}

function atEnd(reader: ByteReader): boolean {
  if (reader.bytes[reader.position] !== tags.end || reader.remaining === 0) return false;
  reader.position++;
  return true;
}

/** The canonical codec of keys: what key groups, stored keys and map keys are made of. */
export const keyCodec: Codec<KeyValue> = {
  format: 'key',
  encode: (value, writer) => write(value, writer, 0),
  decode: read,
};

/** {@link keyCodec} for keys of one type. */
export function keyOf<K extends KeyValue>(): Codec<K> {
  return keyCodec as Codec<K>;
}
