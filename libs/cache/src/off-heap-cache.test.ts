import { SeededRandom } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import { expect, test } from 'vitest';
import { type CachedValue, OffHeapCache } from './index.ts';

const seed = Number(process.env['MILLRACE_SEED'] ?? 5);
const cases = Number(process.env['MILLRACE_CASES'] ?? 30);

const clock = new ManualClock(0);

function put(cache: OffHeapCache, owner: number, key: Buffer, value: Buffer, expiresAtMs = 0): void {
  cache.put(owner, key, 0, key.length, value, 0, value.length, expiresAtMs);
}

function get(cache: OffHeapCache, owner: number, key: Buffer): string {
  const into: CachedValue = { bytes: key, start: 0, end: 0 };
  const answer = cache.get(owner, key, 0, key.length, into);
  return answer === 'found' ? Buffer.from(into.bytes.slice(into.start, into.end)).toString('hex') : answer;
}

const key = (i: number): Buffer => Buffer.from(`key-${i}`);

test('values are found, absent keys are remembered, owners do not see each other', () => {
  const cache = new OffHeapCache({ clock, bytesMax: 1 << 16 });
  const [one, two] = [cache.addOwner(), cache.addOwner()];
  expect(get(cache, one, key(1))).toBe('unknown');
  put(cache, one, key(1), Buffer.from([1, 2, 3]));
  cache.putAbsent(two, key(1), 0, key(1).length);
  expect(get(cache, one, key(1))).toBe('010203');
  expect(get(cache, two, key(1))).toBe('absent');
  put(cache, two, key(1), Buffer.alloc(0));
  expect(get(cache, two, key(1))).toBe('');
  expect(cache).toMatchObject({ entries: 2, hits: 3, misses: 1 });
});

test('an expired value is absent', () => {
  const cache = new OffHeapCache({ clock, bytesMax: 1 << 16 });
  const owner = cache.addOwner();
  put(cache, owner, key(1), Buffer.from([7]), 100);
  clock.advance(99);
  expect(get(cache, owner, key(1))).toBe('07');
  clock.advance(1);
  expect(get(cache, owner, key(1))).toBe('absent');
});

test('what is used stays when what is not makes room', () => {
  const cache = new OffHeapCache({ clock, bytesMax: 1 << 16 });
  const owner = cache.addOwner();
  put(cache, owner, key(0), Buffer.alloc(100, 1));
  for (let i = 1; i < 3000; i++) {
    put(cache, owner, key(i), Buffer.alloc(100, 2));
    expect(get(cache, owner, key(0))).toHaveLength(200);
  }
  expect(get(cache, owner, key(1))).toBe('unknown');
  expect(cache.evictions).toBeGreaterThan(2000);
});

test('a value beyond its share is not kept, and neither is the one it replaces', () => {
  const cache = new OffHeapCache({ clock, bytesMax: 1 << 16 });
  const owner = cache.addOwner();
  put(cache, owner, key(1), Buffer.from([1]));
  put(cache, owner, key(1), Buffer.alloc(1 << 15));
  expect(get(cache, owner, key(1))).toBe('unknown');
  expect(cache.entries).toBe(0);
});

test('without memory it knows nothing', () => {
  const cache = new OffHeapCache({ clock, bytesMax: 100 });
  put(cache, cache.addOwner(), key(1), Buffer.from([1]));
  expect(get(cache, 1, key(1))).toBe('unknown');
  expect(cache.bytes).toBe(0);
});

test('it never gives another value than the last one put, and its limit holds after every step (random steps)', () => {
  for (let round = 0; round < cases; round++) {
    const random = new SeededRandom(seed + round);
    const bytesMax = 1024 << random.below(6);
    const cache = new OffHeapCache({ clock, bytesMax });
    const owners = [cache.addOwner(), cache.addOwner()];
    const model = new Map<string, string>();
    const keys = 1 + random.below(400);
    const wrong: string[] = [];
    let known = 0;
    for (let step = 0; step < 3000; step++) {
      const owner = owners[random.below(2)] as number;
      const k = key(random.below(keys));
      const id = `${owner} ${k.toString()}`;
      const action = random.below(10);
      let answer = 'unknown';
      if (action < 5) {
        const value = Buffer.alloc(random.below(random.below(20) === 0 ? 2000 : 60), random.below(256));
        put(cache, owner, k, value);
        model.set(id, value.toString('hex'));
      } else if (action === 5) {
        cache.putAbsent(owner, k, 0, k.length);
        model.set(id, 'absent');
      } else answer = get(cache, owner, k);
      if (answer !== 'unknown') known++;
      const right = answer === 'unknown' || answer === model.get(id);
      if (!right || cache.bytes > bytesMax || cache.entries > model.size)
        wrong.push(`seed ${seed + round} step ${step}`);
    }
    expect(wrong).toEqual([]);
    expect(known).toBeGreaterThan(bytesMax > 2048 ? 20 : -1);
  }
});
