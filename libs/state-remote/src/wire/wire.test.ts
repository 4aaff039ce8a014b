import { packedItem, packedValue, packKeys, packValues, WriteBatch } from '@millrace/state';
import { describe, expect, it } from 'vitest';
import { float64sOf, uint32sOf } from './arrays.ts';
import { batchFromWire, batchToWire } from './batch.ts';
import { keysFromWire, keysToWire, pageFromWire, pageToWire, valuesFromWire, valuesToWire } from './packed.ts';
import { itemBytesMax, splitItems } from './split.ts';

const text = (value: string): Uint8Array => new Uint8Array(Buffer.from(value));
const large = (letter: string): Uint8Array => new Uint8Array(Buffer.alloc(700 * 1024, letter));

/** The same bytes at an odd place in memory, as they come out of a message. */
function misaligned(bytes: Uint8Array): Uint8Array {
  const shifted = Buffer.alloc(bytes.length + 1);
  shifted.set(bytes, 1);
  return shifted.subarray(1);
}

function entriesOf(batch: WriteBatch): unknown[] {
  return Array.from({ length: batch.count }, (_, i) => ({
    key: Buffer.from(batch.arena.bytes.subarray(batch.keyStart(i), batch.valueStart(i))).toString(),
    value: Buffer.from(batch.arena.bytes.subarray(batch.valueStart(i), batch.valueEnd(i))).toString('latin1'),
    isDelete: batch.isDelete(i),
    expiresAtMs: batch.expiresAtMs(i),
  }));
}

function batchOf(...entries: readonly (readonly [string, Uint8Array | undefined, number?])[]): WriteBatch {
  const batch = new WriteBatch();
  for (const [key, value, expiresAtMs] of entries) {
    batch.begin();
    batch.arena.raw(text(key));
    batch.endKey();
    if (value === undefined) batch.delete();
    else {
      batch.arena.raw(value);
      batch.put(expiresAtMs);
    }
  }
  return batch;
}

describe('packed arrays', () => {
  it('are read wherever they lie in memory', () => {
    const bytes = new Uint8Array(Float64Array.of(1.5, -2, 1e300).buffer);
    expect([...float64sOf(misaligned(bytes))]).toEqual([1.5, -2, 1e300]);
    expect([...uint32sOf(misaligned(new Uint8Array(Uint32Array.of(1, 0xffff_ffff).buffer)))]).toEqual([1, 0xffff_ffff]);
    expect(() => uint32sOf(new Uint8Array(5))).toThrow(expect.objectContaining({ code: 'bad-argument' }));
  });

  it('bring keys over as a copy, also those in the middle of a larger arena', () => {
    const keys = packKeys([text('a'), text(''), text('ccc')]);
    const wire = keysToWire({ ...keys, bytes: Uint8Array.of(...keys.bytes, 9, 9) });
    keys.bytes.fill(0);
    const read = keysFromWire({ bytes: misaligned(wire.bytes), offsets: misaligned(wire.offsets) });
    expect(Array.from({ length: read.count }, (_, i) => Buffer.from(packedItem(read, i)).toString())).toEqual([
      'a',
      '',
      'ccc',
    ]);
  });

  it.each([
    ['no offsets', []],
    ['offsets that begin late', [1, 2]],
    ['offsets that go back', [0, 2, 1]],
    ['offsets beyond the bytes', [0, 4]],
  ])('are refused with %s', (_what, offsets) => {
    const message = { bytes: text('abc'), offsets: new Uint8Array(Uint32Array.from(offsets).buffer) };
    expect(() => keysFromWire(message)).toThrow(expect.objectContaining({ code: 'bad-argument' }));
  });

  it('bring values over, absent and empty ones apart, in one part or in several', () => {
    const values = [text('a'), undefined, text(''), large('b'), undefined, large('c'), text('d')];
    const parts = valuesToWire(packValues(values));
    expect(parts).toHaveLength(2);
    const read = valuesFromWire(parts);
    expect(read.count).toBe(values.length);
    for (const [i, value] of values.entries()) expect(packedValue(read, i)?.length).toBe(value?.length);
    expect(valuesFromWire(valuesToWire(packValues([]))).count).toBe(0);
  });

  it('bring pages over, large ones as several', () => {
    const page = { keys: packKeys([text('a'), text('b')]), values: packValues([large('a'), large('b')]) };
    const pages = pageToWire(page).map(pageFromWire);
    expect(pages.map((one) => one && Buffer.from(packedItem(one.keys, 0)).toString())).toEqual(['a', 'b']);
    expect(pages.map((one) => one?.values.bytes.length)).toEqual([700 * 1024, 700 * 1024]);
  });
});

describe('a write batch', () => {
  it('comes over whole, in parts of bounded size, and may be reused at once', () => {
    const batch = batchOf(
      ['a', text('A'), 17],
      ['b', undefined],
      ['c', large('c')],
      ['d', large('d'), 3],
      ['e', undefined],
      ['', text('')],
    );
    const expected = entriesOf(batch);
    const parts = batchToWire(batch);
    batch.arena.bytes.fill(0);
    batch.reset();
    expect(parts).toHaveLength(2);
    const read = new WriteBatch();
    const found: unknown[] = [];
    for (const { arena, entries, expiry } of parts) {
      read.load(batchFromWire({ arena, entries: misaligned(entries), expiry: misaligned(expiry) }));
      found.push(...entriesOf(read));
    }
    expect(found).toEqual(expected);
  });

  it('that is empty is nothing', () => {
    expect(batchToWire(new WriteBatch())).toEqual([]);
  });

  it.each([
    ['an entry beyond the arena', [0, 1, 9, 0], 1],
    ['an entry that goes back', [2, 1, 2, 0], 1],
    ['an unknown mark', [0, 1, 2, 7], 1],
    ['more expiries than entries', [0, 1, 2, 0], 2],
  ])('with %s is refused', (_what, entries, expiries) => {
    const loaded = { arena: text('abc'), entries: Uint32Array.from(entries), expiry: new Float64Array(expiries) };
    expect(() => new WriteBatch().load(loaded)).toThrow(expect.objectContaining({ code: 'bad-argument' }));
  });

  it('that was loaded can be written to again', () => {
    const batch = new WriteBatch();
    batch.load(batchFromWire(batchToWire(batchOf(['a', text('A')]))[0] as ReturnType<typeof batchToWire>[0]));
    for (let i = 0; i < 300; i++) {
      batch.begin();
      batch.arena.raw(text(`k${i}`));
      batch.endKey();
      batch.put(i);
    }
    expect(entriesOf(batch)).toHaveLength(301);
    expect(entriesOf(batch).at(-1)).toMatchObject({ key: 'k299', expiresAtMs: 299 });
  });
});

it('items too large for any message are refused by size', () => {
  expect(() => splitItems(2, (i) => i * (itemBytesMax + 1))).toThrow(
    expect.objectContaining({
      code: 'rpc-too-large',
      details: { sizeBytes: itemBytesMax + 1, allowedBytes: itemBytesMax },
    }),
  );
  expect(splitItems(2, (i) => i * itemBytesMax)).toEqual([
    [0, 1],
    [1, 2],
  ]);
});
