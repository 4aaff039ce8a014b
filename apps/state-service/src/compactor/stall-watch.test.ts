import { ManualClock } from '@millrace/kernel/testing';
import { expect, test } from 'vitest';
import { StallWatch } from './stall-watch.ts';

function setUp() {
  const clock = new ManualClock(1000);
  let beats = 0;
  const watch = new StallWatch({ clock, intervalMs: 1000, silenceMaxMs: 5000, beat: () => beats++ });
  return { clock, watch, beats: () => beats };
}

test('a process that goes on beats, and counts as alive', () => {
  const { clock, watch, beats } = setUp();
  for (let i = 0; i < 20; i++) clock.advance(1000);
  expect(beats()).toBe(20);
  expect(watch.check()).toBe(false);
  watch.stop();
  clock.advance(10_000);
  expect(beats()).toBe(20);
});

test('a compactor that stood still for longer than its heartbeats may be missing knows it before it answers', () => {
  const { clock, watch, beats } = setUp();
  clock.advance(1000);
  // No timer runs in a process that is stopped; the time goes on.
  const at = clock.monotonicMs.bind(clock);
  clock.monotonicMs = () => at() + 6000;
  expect(watch.check()).toBe(true);
  expect(watch.signal.aborted).toBe(true);
  clock.advance(1000);
  expect(beats()).toBe(1);
});
