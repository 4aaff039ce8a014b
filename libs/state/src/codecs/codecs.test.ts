import { ByteReader, ByteWriter } from '@millrace/kernel';
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { Codec, CodecType } from '../codec.ts';
import { array, nullable, optional } from './composed.ts';
import { decoderFor } from './decoder-for.ts';
import { checkCompatible } from './format.ts';
import { msgpack } from './msgpack.ts';
import { bool, bytes, float64, int64, json, string } from './primitives.ts';
import { struct } from './struct.ts';

function encoded<T>(codec: Codec<T>, value: T): Uint8Array {
  const writer = new ByteWriter(1);
  codec.encode(value, writer);
  return writer.copy();
}

function roundTrip<T>(codec: Codec<T>, value: T): T {
  // Surrounded, so that a codec that reads to the end instead of to its own end is caught.
  const bytesOf = encoded(codec, value);
  const framed = new Uint8Array(bytesOf.length + 2).fill(0xee);
  framed.set(bytesOf, 1);
  const reader = new ByteReader(framed, 1);
  const out = codec.decode(reader);
  expect(reader.position).toBe(1 + bytesOf.length);
  return out;
}

function readAs<T>(stored: Codec<unknown>, value: unknown, current: Codec<T>): T {
  checkCompatible(stored.format, current.format);
  return decoderFor(current, stored.format)(new ByteReader(encoded(stored, value)));
}

describe('codecs', () => {
  test.each([
    0,
    1,
    -1,
    63,
    64,
    -64,
    127,
    128,
    2 ** 31,
    -(2 ** 31),
    2 ** 32 + 1,
    1.7e12,
    Number.MAX_SAFE_INTEGER,
    Number.MIN_SAFE_INTEGER,
  ])('int64 keeps %d', (value) => expect(roundTrip(int64, value)).toBe(value));

  test.each([0.5, Number.NaN, Infinity, 2 ** 53])('int64 refuses %d', (value) => {
    expect(() => encoded(int64, value)).toThrow(expect.objectContaining({ code: 'state-bad-value' }));
  });

  test('float64 keeps −0, NaN and the infinities', () => {
    for (const value of [-0, Number.NaN, -Infinity, 1 / 3]) expect(roundTrip(float64, value)).toBe(value);
  });

  test.each([
    '',
    'a',
    'ä'.repeat(50),
    'x'.repeat(127),
    'x'.repeat(128),
    '€'.repeat(5461),
    '€'.repeat(5462),
    '\ufeff',
    '\ufeff with a byte order mark in front',
    '😀',
  ])('string keeps text of any length', (value) => expect(roundTrip(string, value) === value).toBe(true));

  test('decoded bytes are a copy', () => {
    const writer = new ByteWriter();
    bytes.encode(Uint8Array.of(1, 2, 3), writer);
    const out = bytes.decode(new ByteReader(writer.written()));
    writer.bytes.fill(9);
    expect([...out]).toEqual([1, 2, 3]);
  });

  test('bool, json, array, optional and nullable round-trip', () => {
    expect(roundTrip(bool, true)).toBe(true);
    expect(roundTrip(json(), { a: [1, null, 'x'] })).toEqual({ a: [1, null, 'x'] });
    expect(roundTrip(array(array(int64)), [[1], [], [2, 3]])).toEqual([[1], [], [2, 3]]);
    expect(roundTrip(optional(string), undefined)).toBeUndefined();
    expect(roundTrip(nullable(string), null)).toBeNull();
    expect(roundTrip(nullable(optional(string)), 'x')).toBe('x');
  });

  test('msgpack keeps Map, Set, Date, bigint, byte arrays and undefined', () => {
    const value = {
      m: new Map([[{ k: 1 }, new Set([1])]]),
      d: new Date(5),
      n: 1n << 70n,
      b: Uint8Array.of(0, 1),
      u: undefined,
    };
    expect(roundTrip(msgpack(), value)).toEqual(value);
  });
});

describe('struct', () => {
  const user = struct({ name: string, age: int64, mail: optional(string), tags: array(string) });

  test('has the type that its fields have', () => {
    expectTypeOf<CodecType<typeof user>>().toEqualTypeOf<{
      name: string;
      age: number;
      tags: readonly string[];
      mail?: string | undefined;
    }>();
  });

  test('keeps its fields, nested ones too', () => {
    const outer = struct({ user, at: float64, flag: bool, raw: bytes, any: msgpack(), __proto__x: json() });
    const value = {
      user: { name: 'Ada', age: 36, mail: undefined, tags: ['a', 'b'] },
      at: 1.5,
      flag: false,
      raw: Uint8Array.of(7),
      any: { x: 1 },
      __proto__x: [1],
    };
    expect(roundTrip(outer, value)).toEqual(value);
  });

  test('names the field that cannot be written', () => {
    const outer = struct({ user });
    const bad = { user: { name: 'Ada', age: 0.5, tags: [] } };
    expect(() => encoded(outer, bad)).toThrow(
      expect.objectContaining({ code: 'state-bad-value', details: { field: 'user.age' } }),
    );
  });

  test('old state is read after fields were added, dropped and reordered', () => {
    const now = struct({ tags: array(string), city: optional(string), rank: nullable(int64), name: string });
    const old = { name: 'Ada', age: 36, mail: 'a@b', tags: ['x'] };
    expect(readAs(user as Codec<unknown>, old, now)).toEqual({ tags: ['x'], city: undefined, rank: null, name: 'Ada' });
  });

  test('old state is read inside arrays, optionals and structs, and integers as floats', () => {
    const before = struct({ items: array(struct({ a: int64, gone: array(optional(json())) })), b: int64 });
    const now = struct({ b: optional(float64), items: optional(array(struct({ extra: optional(bool), a: float64 }))) });
    const value = { items: [{ a: 1, gone: [{ x: 1 }, undefined] }], b: 5 };
    expect(readAs(before as Codec<unknown>, value, now)).toEqual({ b: 5, items: [{ extra: undefined, a: 1 }] });
  });

  test.each([
    ['a required field was added', struct({ a: int64 }), struct({ a: int64, fresh: string }), 'fresh'],
    ['a type was changed', struct({ a: int64 }), struct({ a: string }), 'a'],
    ['an optional field was made required', struct({ a: optional(int64) }), struct({ a: int64 }), 'a'],
    [
      'a nested field was changed',
      struct({ o: array(struct({ x: bool })) }),
      struct({ o: array(struct({ x: int64 })) }),
      'o[].x',
    ],
    ['nullable became optional', struct({ a: nullable(int64) }), struct({ a: optional(int64) }), 'a'],
    ['a field with a foreign codec was dropped', struct({ f: { ...int64, format: 'foreign' } }), struct({}), 'f'],
    ['a struct became a number', struct({ a: int64 }), int64, ''],
  ])('a change is refused, naming the field, when %s', (_what, before, now, field) => {
    expect(() => checkCompatible(before.format, now.format)).toThrow(
      expect.objectContaining({ code: 'state-incompatible', details: { field } }),
    );
  });
});
