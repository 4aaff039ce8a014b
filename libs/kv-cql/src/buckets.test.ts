import { ByteWriter, compareBytes, prefixEnd, SeededRandom } from '@millrace/kernel';
import { eventTimerStateId, writePrefix, writeSized } from '@millrace/state';
import { expect, test } from 'vitest';
import { bucketOf, bucketOfRange } from './buckets.ts';

function bytes(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text));
}

function storedKey(stateId: number, owner: string, rest: string): Uint8Array {
  const writer = new ByteWriter(32);
  writePrefix(writer, 3, stateId);
  writeSized(writer, bytes(owner));
  writer.raw(bytes(rest));
  return writer.copy();
}

test('all entries of a map are in one bucket, which a scan of the map knows; maps are spread', () => {
  const used = new Set<number>();
  for (let n = 0; n < 200; n++) {
    const prefix = storedKey(7, `owner ${n}`, '');
    const bucket = bucketOfRange(prefix, prefixEnd(prefix), 8);
    expect(bucket).toBeDefined();
    used.add(bucket as number);
    for (const rest of ['', 'a', 'zz']) expect(bucketOf(storedKey(7, `owner ${n}`, rest), 8)).toBe(bucket);
  }
  expect(used.size).toBe(8);
});

test('timers of a shard are in one bucket', () => {
  const prefix = storedKey(eventTimerStateId, '', '').subarray(0, 4);
  expect(bucketOfRange(prefix, prefixEnd(prefix), 8)).toBe(0);
  expect(bucketOf(storedKey(eventTimerStateId, 'time', 'x'), 8)).toBe(0);
});

test('a key of a range is in the bucket that the range names, whatever the bytes', () => {
  const random = new SeededRandom(5);
  const wrong: string[] = [];
  for (let n = 0; n < 20_000; n++) {
    const some = (): Uint8Array =>
      Uint8Array.from({ length: random.below(9) }, () => [0, 1, 2, 3, 4, 0x80, 255][random.below(7)] as number);
    const [start = bytes(''), key = bytes(''), end = bytes('')] = [some(), some(), some()].toSorted(compareBytes);
    const to = random.below(3) === 0 ? prefixEnd(start) : end;
    const isInside = compareBytes(start, key) <= 0 && (to === undefined || compareBytes(key, to) < 0);
    const bucket = bucketOfRange(start, to, 8);
    if (isInside && bucket !== undefined && bucketOf(key, 8) !== bucket) {
      wrong.push([start, key, to ?? bytes('')].map((one) => Buffer.from(one).toString('hex')).join(' '));
    }
  }
  expect(wrong).toEqual([]);
});
