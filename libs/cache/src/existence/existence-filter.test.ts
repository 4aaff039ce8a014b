import { ManualClock } from '@millrace/kernel/testing';
import { describe, expect, test } from 'vitest';
import { ExistenceFilter, type ExistenceFilterOptions, type ExistenceScope } from './existence-filter.ts';

const ttlMs = 60_000;
const keyGroups = { start: 0, end: 7 };

function setUp(options: Partial<ExistenceFilterOptions> = {}) {
  const clock = new ManualClock(1_700_000_000_000);
  const filter = new ExistenceFilter({
    bytesMax: 1 << 16,
    clock,
    whenFull: 'fail',
    setting: 'filterBytes',
    ...options,
  });
  return { clock, filter };
}

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

function add(scope: ExistenceScope, key: string, expiresAtMs: number, keyGroup = 3): void {
  const bytes = bytesOf(key);
  scope.add(keyGroup, bytes, 0, bytes.length, expiresAtMs);
}

function isAbsent(scope: ExistenceScope, key: string, keyGroup = 3): boolean {
  const bytes = bytesOf(key);
  return scope.isAbsent(keyGroup, bytes, 0, bytes.length);
}

function remove(scope: ExistenceScope, key: string, keyGroup = 3): void {
  const bytes = bytesOf(key);
  scope.remove(keyGroup, bytes, 0, bytes.length);
}

/** Adds keys until one is refused; how many were taken. */
function fill(scope: ExistenceScope, expiresAtMs: () => number, keyGroup: (i: number) => number = () => 3): number {
  for (let i = 0; ; i++) {
    try {
      add(scope, `key ${i}`, expiresAtMs(), keyGroup(i));
    } catch {
      return i;
    }
  }
}

describe('the existence filter', () => {
  test('knows which keys of a new state exist: added, until they expire or are deleted', () => {
    const { clock, filter } = setUp();
    const scope = filter.openScope({ keyGroups, ttlMs, isEmpty: true });
    expect(isAbsent(scope, 'a')).toBe(true);
    add(scope, 'a', clock.nowMs() + 1000);
    add(scope, 'b', clock.nowMs() + 5000);
    expect([isAbsent(scope, 'a'), isAbsent(scope, 'b'), isAbsent(scope, 'a', 4)]).toEqual([false, false, true]);
    clock.advance(2000);
    remove(scope, 'b');
    expect([isAbsent(scope, 'a'), isAbsent(scope, 'b')]).toEqual([true, true]);
    expect(filter.stats).toMatchObject({ absent: 4, present: 2, unknown: 0 });
  });

  test('answers nothing for one time to live after a restart, and everything then', () => {
    const { clock, filter } = setUp();
    const scope = filter.openScope({ keyGroups, ttlMs, isEmpty: false });
    add(scope, 'written', clock.nowMs() + ttlMs);
    clock.advance(ttlMs - 1);
    expect(isAbsent(scope, 'of an earlier life')).toBe(false);
    add(scope, 'refreshed', clock.nowMs() + ttlMs);
    clock.advance(1);
    expect(isAbsent(scope, 'of an earlier life')).toBe(true);
    expect(isAbsent(scope, 'refreshed')).toBe(false);
    expect(filter.stats.unknown).toBe(1);
  });

  test('never answers for keys without time to live after a restart', () => {
    const { clock, filter } = setUp();
    const scope = filter.openScope({ keyGroups, ttlMs: 0, isEmpty: false });
    clock.advance(10 * ttlMs);
    expect(isAbsent(scope, 'of an earlier life')).toBe(false);
  });

  test('keeps a key for the longest of its expiries, whatever the order of write and late read', () => {
    const { clock, filter } = setUp();
    const scope = filter.openScope({ keyGroups, ttlMs, isEmpty: true });
    add(scope, 'a', clock.nowMs() + 5000);
    add(scope, 'a', clock.nowMs() + 1000);
    clock.advance(4000);
    expect(isAbsent(scope, 'a')).toBe(false);
    add(scope, 'a', 0);
    clock.advance(100 * ttlMs);
    expect(isAbsent(scope, 'a')).toBe(false);
  });

  test('refuses to evict a key that may exist, and says how much memory is missing and where', () => {
    const { clock, filter } = setUp();
    const scope = filter.openScope({ keyGroups, ttlMs, isEmpty: true });
    // Full after a quarter of a time to live: three times as much has to come.
    const taken = fill(scope, () => {
      clock.advance(15);
      return clock.nowMs() + ttlMs;
    });
    expect(taken).toBeGreaterThan(1000);
    let error: unknown;
    try {
      add(scope, 'one more', clock.nowMs() + ttlMs);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toMatchObject({ code: 'cache-filter-full', kind: 'setup', details: { setting: 'filterBytes' } });
    const { addBytes } = (error as { details: { addBytes: number } }).details;
    const missingBytes = (ttlMs / (taken * 15) - 1) * (1 << 16);
    expect(addBytes).toBeGreaterThan(missingBytes);
    expect(addBytes).toBeLessThan(missingBytes * 1.3);
    expect(String(error)).toContain('MiB to the setting "filterBytes"');
    const lost = Array.from({ length: taken }, (_, i) => `key ${i}`).filter((key) => isAbsent(scope, key));
    expect(lost).toEqual([]);
  });

  test('with as much memory as it asked for it is not full', () => {
    const small = setUp();
    const scope = small.filter.openScope({ keyGroups, ttlMs, isEmpty: true });
    const expiry = (clock: ManualClock) => (): number => {
      clock.advance(20);
      return clock.nowMs() + ttlMs;
    };
    fill(scope, expiry(small.clock));
    let addBytes = 0;
    try {
      add(scope, 'one more', small.clock.nowMs() + ttlMs);
    } catch (error) {
      addBytes = (error as { details: { addBytes: number } }).details.addBytes;
    }
    const { clock, filter } = setUp({ bytesMax: (1 << 16) + addBytes });
    const wide = filter.openScope({ keyGroups, ttlMs, isEmpty: true });
    const next = expiry(clock);
    for (let i = 0; i < 20_000; i++) add(wide, `key ${i}`, next());
    expect(isAbsent(wide, 'key 19999')).toBe(false);
    expect(isAbsent(wide, 'key 0')).toBe(true);
  });

  test('turned off where memory is short, it says nothing of that key group, and goes on for the others', () => {
    const { clock, filter } = setUp({ whenFull: 'turn-off' });
    const scope = filter.openScope({ keyGroups, ttlMs, isEmpty: true });
    for (let i = 0; i < 4000; i++) add(scope, `key ${i}`, clock.nowMs() + ttlMs, i % 8);
    const off = [0, 1, 2, 3, 4, 5, 6, 7].filter((keyGroup) => !isAbsent(scope, 'never added', keyGroup));
    expect(off.length).toBe(filter.stats.groupsTurnedOff);
    expect(off.length).toBeGreaterThan(1);
    expect(off.length).toBeLessThan(8);
    const lost = Array.from({ length: 4000 }, (_, i) => i).filter((i) => isAbsent(scope, `key ${i}`, i % 8));
    expect(lost).toEqual([]);
    expect(filter.stats.bytes).toBeLessThanOrEqual(1 << 16);
  });

  test('key groups that went away and come back are learned anew', () => {
    const { clock, filter } = setUp();
    const before = filter.openScope({ keyGroups, ttlMs, isEmpty: true });
    add(before, 'a', clock.nowMs() + ttlMs, 3);
    add(before, 'a', clock.nowMs() + ttlMs, 4);
    before.turnOff({ start: 0, end: 3 });
    expect([isAbsent(before, 'b', 3), isAbsent(before, 'b', 4)]).toEqual([false, true]);
    const after = filter.openScope({ keyGroups: { start: 0, end: 3 }, ttlMs, isEmpty: false });
    expect(isAbsent(after, 'written by the other owner', 3)).toBe(false);
    clock.advance(ttlMs);
    expect(isAbsent(after, 'a', 3)).toBe(true);
    before.close();
    before.close();
    expect(isAbsent(before, 'b', 4)).toBe(false);
  });

  test('memory of a closed scope is free for others', () => {
    const { clock, filter } = setUp();
    const first = filter.openScope({ keyGroups, ttlMs, isEmpty: true });
    const taken = fill(first, () => clock.nowMs() + ttlMs);
    first.close();
    const second = filter.openScope({ keyGroups, ttlMs, isEmpty: true });
    expect(fill(second, () => clock.nowMs() + ttlMs)).toBe(taken);
  });

  test('does not lie when the clock goes back over keys that it has forgotten', () => {
    const { filter, clock } = setUp();
    const scope = filter.openScope({ keyGroups, ttlMs, isEmpty: true });
    for (let i = 0; i < 10_000; i++) {
      clock.advance(100);
      add(scope, `key ${i}`, clock.nowMs() + ttlMs);
    }
    const [far, near] = [new ManualClock(clock.nowMs() - 2 * ttlMs), clock];
    expect(isAbsent(scope, 'never added')).toBe(true);
    const nowMs = near.nowMs.bind(near);
    near.nowMs = () => far.nowMs();
    expect(isAbsent(scope, 'key 8000')).toBe(false);
    near.nowMs = nowMs;
    expect(isAbsent(scope, 'key 8000')).toBe(true);
  });

  test('without memory it knows nothing', () => {
    const { filter } = setUp({ bytesMax: 0 });
    const scope = filter.openScope({ keyGroups, ttlMs, isEmpty: true });
    add(scope, 'a', 0);
    expect(isAbsent(scope, 'b')).toBe(false);
    expect(filter.stats).toMatchObject({ entries: 0, bytes: 0 });
  });
});
