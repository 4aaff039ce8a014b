import { compareBytes, SeededRandom } from '@millrace/kernel';
import { expect, test } from 'vitest';
import { MergeCursor } from '../merge/merge-cursor.ts';
import { keyHash, Memtable, type MemtableView } from './memtable.ts';
import { memtableCursors } from './memtable-cursor.ts';
import { sortEntries } from './sort-entries.ts';
import { newestOnly } from './sorted-runs.ts';

const seed = Number(process.env['MILLRACE_SEED'] ?? 11);

function entriesOf(view: MemtableView, start: Uint8Array): Array<[string, string]> {
  const merge = new MergeCursor(memtableCursors(view, start));
  const out: Array<[string, string]> = [];
  void merge.open();
  for (; merge.valid; void merge.next()) {
    const at = merge.at;
    const key = Buffer.from(at.bytes.subarray(at.keyStart, at.keyEnd)).toString('hex');
    const value = Buffer.from(at.bytes.subarray(at.valueStart, at.valueEnd)).toString('hex');
    out.push([key, at.isTombstone ? 'deleted' : `${value}@${at.expiresAtMs}`]);
  }
  return out;
}

function sortedModel(model: ReadonlyMap<string, string>, start: string): Array<[string, string]> {
  return [...model].filter(([key]) => key >= start).sort(([a], [b]) => (a < b ? -1 : 1));
}

interface OpenView {
  readonly view: MemtableView;
  readonly start: Uint8Array;
  readonly expected: Array<[string, string]>;
}

function checkView({ view, start, expected }: OpenView): void {
  expect(entriesOf(view, start), `seed ${seed}`).toEqual(expected);
  view.release();
}

function checkGet(table: Memtable, key: Buffer, expected: string | undefined): void {
  const into = { bytes: key as Uint8Array, start: 0, end: 0 };
  const answer = table.get(keyHash(key, 0, key.length), key, 0, key.length, 500, into);
  const value = Buffer.from(into.bytes.subarray(into.start, into.end)).toString('hex');
  const wanted = expected === undefined ? 'none' : expected === 'deleted' ? 'hidden' : expected.split('@')[0];
  expect(answer === 'found' ? value : answer).toBe(wanted);
}

test('a memtable answers as a map does, and open views keep what they saw (random steps)', () => {
  for (let round = 0; round < 40; round++) {
    const random = new SeededRandom(seed + round);
    const table = new Memtable({ bytesMax: 1 << 20 });
    const model = new Map<string, string>();
    const views: OpenView[] = [];
    for (let step = 0; step < 600; step++) {
      const key = randomKey(random);
      const hex = key.toString('hex');
      const hash = keyHash(key, 0, key.length);
      const action = random.below(20);
      if (action < 12) {
        const value = Buffer.from(random.hex(random.below(12)), 'hex');
        const both = Buffer.concat([key, value]);
        const expiry = random.below(3) === 0 ? 1000 : 0;
        table.put(hash, both, 0, key.length, key.length, both.length, expiry);
        model.set(hex, `${value.toString('hex')}@${expiry}`);
      } else if (action < 16) {
        table.delete(hash, key, 0, key.length);
        model.set(hex, 'deleted');
      } else if (action === 16) {
        views.push({ view: table.view(), start: key, expected: sortedModel(model, hex) });
      } else if (action === 17) {
        for (const open of views.splice(random.below(views.length + 1), 1)) checkView(open);
      } else checkGet(table, key, model.get(hex));
    }
    for (const open of views) checkView(open);
    const { arena, words, count } = table.content();
    const bytes = new Uint8Array(arena);
    const order = newestOnly(bytes, new Int32Array(words), sortEntries(bytes, new Int32Array(words), 0, count));
    expect(order.length).toBe(model.size);
  }
});

/** Few distinct keys of many shapes: shared prefixes, prefixes of each other, zero bytes. */
function randomKey(random: SeededRandom): Buffer {
  const shapes = [
    () => Buffer.alloc(random.below(12)),
    () => Buffer.concat([Buffer.alloc(4), Buffer.from([random.below(4), 0, 0, 0, random.below(9)])]),
    () => Buffer.from('a'.repeat(random.below(30))),
    () => Buffer.from(`key-${random.below(300)}`),
  ];
  return (shapes[random.below(shapes.length)] as () => Buffer)();
}

test('sorting agrees with comparison for large groups of ties and prefixes', () => {
  const random = new SeededRandom(seed);
  const table = new Memtable({ bytesMax: 1 << 22 });
  const keys = new Map<string, Buffer>();
  for (let i = 0; i < 5000; i++) {
    const key = randomKey(random);
    const long = random.below(3) === 0 ? Buffer.concat([Buffer.alloc(200, 7), key]) : key;
    keys.set(long.toString('hex'), long);
    table.put(keyHash(long, 0, long.length), long, 0, long.length, long.length, long.length, 0);
  }
  const expected = [...keys.values()].sort(compareBytes).map((key) => key.toString('hex'));
  expect(entriesOf(table.view(), new Uint8Array()).map(([key]) => key)).toEqual(expected);
});

test('a full memtable refuses and keeps what it has; an empty one takes a value beyond its budget', () => {
  const table = new Memtable({ bytesMax: 16 * 1024 });
  const bytes = Buffer.alloc(100);
  let count = 0;
  for (; ; count++) {
    bytes.writeUInt32BE(count);
    if (!table.put(keyHash(bytes, 0, 8), bytes, 0, 8, 8, 100, 0)) break;
  }
  expect(count).toBeGreaterThan(60);
  expect(table.count).toBe(count);
  expect(table.bytes).toBeLessThanOrEqual(16 * 1024);
  const giant = Buffer.alloc(1 << 20);
  const other = new Memtable({ bytesMax: 16 * 1024 });
  expect(other.put(1, giant, 0, 8, 8, giant.length, 0)).toBe(true);
  expect(other.put(2, giant, 1, 9, 9, 10, 0)).toBe(false);
});
