import { describe, expect, it } from 'vitest';
import { HistoryPolicy } from './history-policy.ts';
import { cachePolicies, cachePolicy } from './policies.ts';
import type { CachePolicy } from './policy.ts';
import { S3FifoPolicy } from './s3-fifo-policy.ts';

const file = (id: string, bytes = 10) => ({ id, bytes });
const ids = (files: readonly { readonly id: string }[]): string[] => files.map(({ id }) => id);

describe.each(cachePolicies)('the policy %s', (name) => {
  it('lets every cached file go once, and none that is gone', () => {
    const policy = cachePolicy(name);
    for (let i = 0; i < 50; i++) policy.added(file(`${i}`), 'written', i);
    for (let i = 0; i < 50; i += 3) policy.accessed(file(`${i}`), 5, 100);
    policy.removed('7');
    const gone: string[] = [];
    for (let id = policy.evict(200); id !== undefined; id = policy.evict(200)) gone.push(id);
    expect(gone.toSorted()).toEqual(
      Array.from({ length: 50 }, (_, i) => `${i}`)
        .filter((id) => id !== '7')
        .toSorted(),
    );
  });

  it('wants no file that is cached', () => {
    const policy = cachePolicy(name);
    policy.added(file('cached'), 'loaded', 0);
    for (const id of ['cached', 'other']) policy.accessed(file(id), 100, 1000);
    expect(ids(policy.wanted(1000))).toEqual(['other']);
    policy.accessed(file('other'), 100, 2000);
    policy.added(file('other'), 'loaded', 2000);
    expect(policy.wanted(2000)).toEqual([]);
  });
});

describe('the history policy', () => {
  it('wants what was read more often than the threshold within the last minute, most read first', () => {
    const policy: CachePolicy = new HistoryPolicy({ readsMin: 10 });
    policy.accessed(file('a'), 11, 0);
    policy.accessed(file('b'), 10, 0);
    policy.accessed(file('c'), 6, 0);
    policy.accessed(file('c'), 20, 30_000);
    expect(ids(policy.wanted(30_000))).toEqual(['c', 'a']);
    expect(ids(policy.wanted(65_000))).toEqual(['c']);
    expect(ids(policy.wanted(100_000))).toEqual([]);
  });

  it('lets the least recently used file go for a new one, but for one that comes back only a file that was not read since its last read but one', () => {
    const policy: CachePolicy = new HistoryPolicy({ readsMin: 10 });
    for (const id of ['a', 'b']) policy.added(file(id), 'written', 0);
    policy.accessed(file('c'), 30, 1000);
    policy.accessed(file('a'), 1, 2000);
    policy.accessed(file('b'), 1, 2100);
    policy.accessed(file('c'), 30, 3000);
    expect(policy.evict(3000, file('c'), 'loaded')).toBeUndefined();
    policy.accessed(file('c'), 30, 4000);
    expect(policy.evict(4000, file('c'), 'loaded')).toBe('a');
    expect(policy.evict(4000, file('d'), 'written')).toBe('b');
  });

  it('does not move files that are read one after the other, all alike, when they do not all fit', () => {
    const policy: CachePolicy = new HistoryPolicy({ readsMin: 10 });
    for (let i = 0; i < 10; i++) policy.added(file(`${i}`), 'written', 0);
    const moved: string[] = [];
    for (let step = 0; step < 200; step++) {
      policy.accessed(file(`${step % 12}`), 20, 1 + step);
      for (const wanted of policy.wanted(1 + step)) {
        if (policy.evict(1 + step, wanted, 'loaded') !== undefined) moved.push(wanted.id);
      }
    }
    expect(moved).toEqual([]);
  });

  it('remembers a bounded number of files that are not cached', () => {
    const policy: CachePolicy = new HistoryPolicy({ readsMin: 1, remembered: 3 });
    for (let i = 0; i < 10; i++) policy.accessed(file(`${i}`), 5, 0);
    expect(ids(policy.wanted(0)).toSorted()).toEqual(['7', '8', '9']);
  });
});

describe('S3-FIFO', () => {
  it.each([
    ['s3-fifo', 3],
    ['lru', 20],
  ] as const)('%s: of 20 files in use, at most %i go when a hundred others are read through once', (name, count) => {
    const policy = cachePolicy(name);
    for (let i = 0; i < 20; i++) policy.added(file(`used ${i}`), 'loaded', 0);
    for (let i = 0; i < 20; i++) policy.accessed(file(`used ${i}`), 3, 0);
    const gone: Array<string | undefined> = [];
    for (let i = 0; i < 100; i++) {
      gone.push(policy.evict(0));
      policy.added(file(`once ${i}`), 'loaded', 0);
    }
    expect(gone.filter((id) => id?.startsWith('used'))).toHaveLength(count);
  });

  it('takes a file that comes back after it left into its main queue', () => {
    const policy: CachePolicy = new S3FifoPolicy();
    for (let i = 0; i < 20; i++) policy.added(file(`${i}`), 'loaded', 0);
    expect(policy.evict(0)).toBe('0');
    policy.added(file('0'), 'loaded', 0);
    const gone = Array.from({ length: 19 }, () => policy.evict(0));
    expect(gone).not.toContain('0');
  });
});
