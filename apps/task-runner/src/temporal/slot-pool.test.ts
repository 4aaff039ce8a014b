import { SeededRandom } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import { expect, test } from 'vitest';
import { SlotPool } from './slot-pool.ts';

function pool(slots: number): { readonly slots: SlotPool; readonly clock: ManualClock } {
  const clock = new ManualClock(0);
  return { slots: new SlotPool({ slots, leaseMs: 10_000, keptMs: 5_000, clock, random: new SeededRandom(1) }), clock };
}

test('a slot that an attempt leaves is kept for the next attempt of the same job, and for no other', () => {
  const { slots } = pool(1);
  const { lease } = slots.lease();
  slots.release(slots.use('flights', [lease]), true);
  expect(slots.free).toBe(0);
  expect(() => slots.use('orders', [lease])).toThrow(/lapsed/);
  slots.use('flights', [lease]);
  expect(slots.inUse).toBe(1);
});

test('a kept slot that nobody comes for is free again', () => {
  const { slots, clock } = pool(1);
  const { lease } = slots.lease();
  slots.release(slots.use('flights', [lease]), true);
  clock.advance(5_000);
  expect(slots.free).toBe(1);
  expect(() => slots.use('flights', [lease])).toThrow(/lapsed/);
});

test('an attempt takes over slots that an older one has not left yet, and its end gives nothing back', () => {
  const { slots } = pool(2);
  const leases = [slots.lease().lease, slots.lease().lease];
  const older = slots.use('flights', leases);
  const newer = slots.use('flights', leases.slice(0, 1));
  slots.release(older, false);
  expect(slots.inUse).toBe(1);
  expect(slots.free).toBe(1);
  slots.release(newer, false);
  expect(slots.free).toBe(2);
});
