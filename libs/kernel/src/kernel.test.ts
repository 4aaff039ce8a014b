import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  ByteReader,
  ByteSlab,
  ByteWriter,
  compareBytes,
  errorFromJson,
  errorToJson,
  keyGroupRange,
  MillraceError,
  murmur3,
  prefixEnd,
  SeededRandom,
  subtaskOfKeyGroup,
} from './index.ts';
import { ManualClock } from './testing/index.ts';

test('murmur3 gives the published vectors', () => {
  const hash = (text: string, seed = 0) => murmur3(new TextEncoder().encode(text), 0, undefined, seed);
  expect(hash('')).toBe(0);
  expect(hash('', 1)).toBe(0x514e28b7);
  expect(hash('test')).toBe(0xba6bd213);
  expect(hash('Hello, world!')).toBe(0xc0363e43);
  expect(hash('The quick brown fox jumps over the lazy dog')).toBe(0x2e4ff723);
});

test('key-group ranges partition the groups and invert', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 600 }), fc.integer({ min: 1, max: 600 }), (a, b) => {
      const parallelism = Math.min(a, b);
      const maxParallelism = Math.max(a, b);
      let next = 0;
      for (let i = 0; i < parallelism; i++) {
        const range = keyGroupRange(i, parallelism, maxParallelism);
        expect(range.start).toBe(next);
        next = range.end + 1;
        for (let kg = range.start; kg <= range.end; kg++) {
          expect(subtaskOfKeyGroup(kg, parallelism, maxParallelism)).toBe(i);
        }
      }
      expect(next).toBe(maxParallelism);
    }),
  );
});

test('what ByteWriter writes ByteReader reads', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          fc.record({ kind: fc.constant('varint' as const), value: fc.maxSafeNat() }),
          fc.record({ kind: fc.constant('f64' as const), value: fc.double() }),
          fc.record({ kind: fc.constant('text' as const), value: fc.string({ unit: 'binary' }) }),
        ),
      ),
      (items) => {
        const writer = new ByteWriter(1);
        const lengths: number[] = [];
        for (const item of items) {
          const before = writer.position;
          if (item.kind === 'varint') writer.varint(item.value);
          else if (item.kind === 'f64') writer.f64le(item.value);
          else writer.utf8(item.value);
          lengths.push(writer.position - before);
        }
        const reader = new ByteReader(writer.copy());
        const read = items.map((item, i) => {
          if (item.kind === 'varint') return reader.varint();
          return item.kind === 'f64' ? reader.f64le() : reader.utf8(lengths[i] as number);
        });
        expect(read).toEqual(items.map((item) => (item.kind === 'text' ? item.value.toWellFormed() : item.value)));
        expect(reader.remaining).toBe(0);
      },
    ),
  );
});

test('prefixEnd bounds exactly the strings with the prefix', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 4 }), fc.uint8Array({ maxLength: 6 }), (prefix, key) => {
      const end = prefixEnd(prefix);
      const inRange = compareBytes(key, prefix) >= 0 && (end === undefined || compareBytes(key, end) < 0);
      const starts = key.length >= prefix.length && prefix.every((byte, i) => key[i] === byte);
      expect(inRange).toBe(starts);
    }),
  );
});

test('an error survives JSON with its code, kind and details', () => {
  const error = new MillraceError('bad-argument', 'limit must be positive', { details: { limit: 0 } });
  const back = errorFromJson(JSON.parse(JSON.stringify(errorToJson(error))));
  expect(back).toMatchObject({ code: 'bad-argument', kind: 'input', message: error.message, details: { limit: 0 } });
});

test('the manual clock fires timers in order of time, then of registration', () => {
  const clock = new ManualClock();
  const fired: string[] = [];
  clock.schedule(20, () => fired.push(`b@${clock.nowMs()}`));
  clock.schedule(10, () => fired.push(`a@${clock.nowMs()}`));
  clock.schedule(20, () => fired.push(`c@${clock.nowMs()}`));
  clock.schedule(30, () => fired.push('never')).cancel();
  clock.advance(25);
  expect(fired).toEqual(['a@10', 'b@20', 'c@20']);
  expect([clock.nowMs(), clock.pendingTimers]).toEqual([25, 0]);
});

test('copies of a slab are whole, apart from each other and from their source', () => {
  const slab = new ByteSlab();
  const random = new SeededRandom(3);
  const made: Array<readonly [Uint8Array, string]> = [];
  for (let i = 0; i < 500; i++) {
    const source = Buffer.from(random.hex(random.below(20) === 0 ? 3000 : random.below(200)), 'hex');
    const start = random.below(source.length + 1);
    const copy = slab.copy(source, start, source.length);
    made.push([copy, source.toString('hex', start)]);
    source.fill(0);
  }
  for (const [copy, expected] of made) expect(Buffer.from(copy).toString('hex')).toBe(expected);
  const [first, second] = [slab.copy(Buffer.from([1, 2]), 0, 2), slab.copy(Buffer.from([3]), 0, 1)];
  first.fill(9);
  expect(second[0]).toBe(3);
});
