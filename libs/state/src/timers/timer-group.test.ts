import { expect, test } from 'vitest';
import type { QueuedTimer } from './stored-timer.ts';
import { TimerGroup } from './timer-group.ts';

const timerAt = (timeMs: number): QueuedTimer => ({ timeMs, key: 'k', namespace: undefined, suffix: Uint8Array.of(1) });

test('a group holds its earliest timers only, however many there are', () => {
  const group = new TimerGroup(0, true);
  for (let i = 0; i < 10_000; i++) {
    group.add(timerAt((i * 7919) % 10_007), 64);
    expect(group.size).toBeLessThanOrEqual(64);
  }
  expect(group.complete).toBe(false);
  const taken = Array.from({ length: group.size }, () => group.take().timeMs);
  expect(taken[0]).toBe(0);
  expect(taken).toEqual(taken.toSorted((a, b) => a - b));
  expect([group.needsRead, group.headMs]).toEqual([true, Number.NEGATIVE_INFINITY]);
});

test('changes that come while a group is read are not lost', () => {
  const group = new TimerGroup(0, false);
  group.beginRead();
  group.add(timerAt(5), 64);
  group.remove(timerAt(20));
  group.endRead([10, 20, 30].map(timerAt), true, 64);
  expect(Array.from({ length: group.size }, () => group.take().timeMs)).toEqual([5, 10, 30]);
  expect(group.headMs).toBe(Number.POSITIVE_INFINITY);
});
