import { ByteReader, ByteWriter, compareBytes } from '@millrace/kernel';
import { describe, expect, test } from 'vitest';
import { forSeeds } from '../testing/property.ts';
import { randomKey } from '../testing/random-values.ts';
import { keyCodec } from './key-codec.ts';
import { parseStoredKey, readLength, writeLength, writePrefix, writeSized } from './key-layout.ts';
import type { KeyValue } from './key-value.ts';
import { primitiveKey } from './primitive-key.ts';

function bytesOf(key: KeyValue): Uint8Array {
  const writer = new ByteWriter(4);
  keyCodec.encode(key, writer);
  return writer.copy();
}

/** A description of a key that equals another exactly when the keys are equal; independent of the codec. */
function described(key: KeyValue): string {
  if (key === null) return 'null';
  if (key instanceof Date) return `date ${key.getTime()}`;
  if (key instanceof Uint8Array) return `bytes [${[...key].join()}]`;
  if (Array.isArray(key)) return `[${key.map(described).join()}]`;
  if (typeof key === 'object') {
    const fields = Object.entries(key as Record<string, KeyValue>).toSorted(([a], [b]) => (a < b ? -1 : 1));
    return `{${fields.map(([name, value]) => `${units(name)}=${described(value)}`).join()}}`;
  }
  if (typeof key === 'string') return `string ${units(key)}`;
  return `${typeof key} ${typeof key === 'number' && key === 0 ? 0 : String(key)}`;
}

function units(text: string): string {
  return Array.from({ length: text.length }, (_, i) => text.charCodeAt(i)).join('.');
}

describe('canonical keys', () => {
  test('come back as they were, and equal bytes mean equal keys', () =>
    forSeeds(300, (random) => {
      const keys = Array.from({ length: 12 }, () => randomKey(random));
      const wrong: string[] = [];
      for (const a of keys) {
        const back = keyCodec.decode(new ByteReader(bytesOf(a)));
        expect(described(back)).toBe(described(a));
        for (const b of keys) {
          const same = described(a) === described(b);
          const sameBytes = compareBytes(bytesOf(a), bytesOf(b)) === 0;
          const samePrimitive = new Set([primitiveKey(a), primitiveKey(b)]).size === 1;
          if (sameBytes !== same || samePrimitive !== same) wrong.push(`${described(a)} and ${described(b)}`);
        }
      }
      expect(wrong).toEqual([]);
    }));

  test('sort as their values do', () =>
    forSeeds(300, (random) => {
      const numbers = Array.from({ length: 8 }, () => (random.float() - 0.5) * 10 ** (random.below(40) - 20));
      const bigints = Array.from({ length: 8 }, () =>
        BigInt.asIntN(64 + random.below(64), BigInt(random.nextU32() - 2 ** 31) << BigInt(random.below(90))),
      );
      const texts = Array.from(
        { length: 8 },
        () => 'ab\0c'.slice(random.below(4)).repeat(random.below(3)) + random.hex(1),
      );
      for (const list of [numbers, bigints, texts] as KeyValue[][]) {
        const byValue = list.toSorted((a, b) =>
          (a as number) < (b as number) ? -1 : (a as number) > (b as number) ? 1 : 0,
        );
        expect(list.toSorted((a, b) => compareBytes(bytesOf(a), bytesOf(b)))).toEqual(byValue);
      }
    }));

  test('a key written as an object with its fields in another order is the same key', () => {
    expect(bytesOf({ a: 1, b: 2 })).toEqual(bytesOf({ b: 2, a: 1 }));
    expect(primitiveKey({ a: 1, b: 2 })).toBe(primitiveKey({ b: 2, a: 1 }));
  });

  test.each([undefined, () => 1, Symbol('x'), new Map(), [undefined], { a: undefined }])('%s is refused', (key) => {
    expect(() => bytesOf(key as never)).toThrow(expect.objectContaining({ code: 'state-bad-key' }));
    if (typeof key !== 'function') return;
    expect(() => primitiveKey(key)).toThrow(expect.objectContaining({ code: 'state-bad-key' }));
  });

  test('a key nested without end is refused', () => {
    const loop: unknown[] = [];
    loop.push(loop);
    expect(() => bytesOf(loop as never)).toThrow(expect.objectContaining({ code: 'state-bad-key' }));
  });
});

describe('stored keys', () => {
  test('give their parts back, and lengths keep their order', () => {
    const writer = new ByteWriter(4);
    writePrefix(writer, 300, 7);
    const key = new Uint8Array(200).fill(1);
    writeSized(writer, key);
    writeSized(writer, Uint8Array.of());
    writer.raw(Uint8Array.of(9, 9));
    const parts = parseStoredKey(new ByteReader(writer.copy()));
    expect(parts).toEqual({ keyGroup: 300, stateId: 7, key, namespace: Uint8Array.of(), mapKey: Uint8Array.of(9, 9) });

    const lengths = [0, 1, 127, 128, 255, 256, 70_000, 2 ** 31 - 1];
    const forms = lengths.map((length) => {
      const one = new ByteWriter(4);
      writeLength(one, length);
      expect(readLength(new ByteReader(one.copy()))).toBe(length);
      return one.copy();
    });
    expect(forms.toSorted(compareBytes)).toEqual(forms);
  });
});
