import { ManualClock } from '@millrace/kernel/testing';
import { describe, expect, it } from 'vitest';
import { Deadlines } from './deadlines.ts';
import { SendQueue } from './send-queue.ts';

describe('the send window', () => {
  it('lets items out in order while they fit, and the rest when earlier ones are done', () => {
    const queue = new SendQueue<{ name: string; costBytes: number }>(100);
    const items = [60, 30, 20, 500, 1].map((costBytes, i) => ({ name: `${i}`, costBytes }));
    for (const item of items) queue.push(item);
    const sent = (): string[] => {
      const out: string[] = [];
      for (let item = queue.next(); item !== undefined; item = queue.next()) out.push(item.name);
      return out;
    };
    expect(sent()).toEqual(['0', '1']);
    expect([queue.sentBytes, queue.waitingBytes]).toEqual([90, 521]);
    queue.done(items[0] as (typeof items)[0]);
    expect(sent()).toEqual(['2']);
    queue.done(items[1] as (typeof items)[0]);
    expect(sent()).toEqual([]); // what is larger than the window waits until it is alone
    queue.done(items[2] as (typeof items)[0]);
    expect(sent()).toEqual(['3']);
    queue.done(items[3] as (typeof items)[0]);
    expect(sent()).toEqual(['4']);
    expect(queue.isEmpty).toBe(true);
  });

  it('keeps nothing of what has been sent, however long it never runs empty', () => {
    const queue = new SendQueue<{ costBytes: number }>(1);
    queue.push({ costBytes: 1 });
    for (let i = 0; i < 5000; i++) {
      queue.push({ costBytes: 1 });
      const item = queue.next();
      expect(item).toBeDefined();
      if (item !== undefined) queue.done(item);
    }
    expect([queue.waitingBytes, queue.drop().length]).toEqual([1, 1]);
  });
});

describe('deadlines', () => {
  it('are noticed each at its time, in whatever order they were set, with one timer', () => {
    const clock = new ManualClock();
    const missed: string[] = [];
    const deadlines = new Deadlines(clock, (key) => missed.push(`${key}@${clock.nowMs()}`));
    deadlines.set(1, 300);
    deadlines.set(2, 100);
    deadlines.set(3, 200);
    deadlines.set(4, 50);
    deadlines.clear(4);
    expect(clock.pendingTimers).toBe(1);
    clock.advance(1000);
    expect(missed).toEqual(['2@100', '3@200', '1@300']);
    expect(clock.pendingTimers).toBe(0);
  });

  it('leave no timer behind', () => {
    const clock = new ManualClock();
    const deadlines = new Deadlines(clock, () => undefined);
    deadlines.set(1, 300);
    deadlines.close();
    expect(clock.pendingTimers).toBe(0);
  });
});
