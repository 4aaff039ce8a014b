import { expect, test } from 'vitest';
import { keyText, type PendingWrite, PendingWrites } from './pending-writes.ts';

const never = (): boolean => false;

function put(pending: PendingWrites, name: string, value: string): PendingWrite {
  const key = new Uint8Array(Buffer.from(name));
  const write = { key, keyText: keyText(key), value: new Uint8Array(Buffer.from(value)), expiresAtMs: 0 };
  pending.put(write);
  return write;
}

test('an overwrite replaces what was not sent, and what was sent does not count as the overwrite', () => {
  const pending = new PendingWrites();
  put(pending, 'a', '1');
  const second = put(pending, 'a', '2');
  const [part, sent] = pending.take(10, never) ?? [];
  expect(sent).toEqual([second]);
  const third = put(pending, 'a', '3');
  pending.done(part as NonNullable<typeof part>, sent as NonNullable<typeof sent>);
  expect(pending.find('a')).toBe(third);
  expect(pending.bytes).toBeGreaterThan(0);
});

test('a snapshot waits for the writes before it, and those behind it have a later sequence', async () => {
  const pending = new PendingWrites();
  put(pending, 'a', '1');
  const part = pending.divide();
  pending.raise(part);
  put(pending, 'a', '2');
  let isFirst = false;
  const waiting = pending.whenFirst(part).then(() => {
    isFirst = true;
  });
  const [first, sent] = pending.take(10, never) ?? [];
  expect([first?.sequence, sent?.length]).toEqual([0, 1]);
  await Promise.resolve();
  expect(isFirst).toBe(false);
  pending.done(first as NonNullable<typeof first>, sent as NonNullable<typeof sent>);
  await waiting;
  expect(pending.take(10, never)?.[0].sequence).toBe(1);
});

test('nothing behind a hold is sent, and it may still be raised', () => {
  const pending = new PendingWrites();
  put(pending, 'a', '1');
  const part = pending.divide();
  pending.hold(part);
  put(pending, 'b', '1');
  const [first, sent] = pending.take(10, never) ?? [];
  pending.done(first as NonNullable<typeof first>, sent as NonNullable<typeof sent>);
  expect(pending.take(10, never)).toBeUndefined();
  pending.raise(part);
  pending.release(part);
  expect(pending.take(10, never)?.[0].sequence).toBe(1);
});

test('a write of a key that is being read waits', () => {
  const pending = new PendingWrites();
  put(pending, 'a', '1');
  put(pending, 'b', '1');
  expect(pending.take(10, (key) => key === 'a')?.[1].map((write) => write.keyText)).toEqual(['b']);
  expect(pending.take(10, never)?.[1].map((write) => write.keyText)).toEqual(['a']);
});
