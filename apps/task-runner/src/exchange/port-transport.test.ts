import { setImmediate as turn } from 'node:timers/promises';
import { MessageChannel } from 'node:worker_threads';
import { MillraceError } from '@millrace/kernel';
import { afterEach, expect, test } from 'vitest';
import { PortTransport } from './port-transport.ts';

interface Seen {
  readonly frames: { from: number; edge: number; frame: Uint8Array }[];
  readonly credits: { to: number; edge: number; bytes: number }[];
  readonly broken: { peer: number; reason: Error }[];
}

const open: PortTransport[] = [];
afterEach(() => {
  for (const transport of open.splice(0)) transport.close();
});

function listening(transport: PortTransport): Seen {
  const seen: Seen = { frames: [], credits: [], broken: [] };
  transport.listen({
    onFrame: (from, edge, frame) => void seen.frames.push({ from, edge, frame }),
    onCredit: (to, edge, bytes) => void seen.credits.push({ to, edge, bytes }),
    onBroken: (peer, reason) => void seen.broken.push({ peer, reason }),
  });
  return seen;
}

/** Slots 0 and 1 of one process. */
function pair(): [PortTransport, PortTransport] {
  const { port1, port2 } = new MessageChannel();
  const made: [PortTransport, PortTransport] = [
    new PortTransport(new Map([[1, port1]])),
    new PortTransport(new Map([[0, port2]])),
  ];
  open.push(...made);
  return made;
}

test('frames sent before the peer listens wait for it, in order', async () => {
  const [a, b] = pair();
  for (let i = 0; i < 10; i++) a.send(1, i % 3, Uint8Array.of(i));
  await turn();
  const seen = listening(b);
  await expect.poll(() => seen.frames.length).toBe(10);
  expect(seen.frames.map(({ frame }) => frame[0])).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(seen.frames[4]).toMatchObject({ from: 0, edge: 1 });
});

test('a full frame moves without a copy; a small view does not drag its buffer along', async () => {
  const [a, b] = pair();
  const seen = listening(b);
  const whole = new Uint8Array(50_000).fill(7);
  const small = new Uint8Array(new ArrayBuffer(50_000), 100, 10).fill(9);
  a.send(1, 0, whole);
  a.send(1, 0, small);
  a.send(1, 0, new Uint8Array());
  a.send(1, 0, Buffer.from('pooled'));
  await expect.poll(() => seen.frames.length).toBe(4);
  expect(whole.byteLength).toBe(0); // transferred
  expect(seen.frames[0]?.frame.byteLength).toBe(50_000);
  expect(seen.frames[1]?.frame).toEqual(new Uint8Array(10).fill(9));
  expect(seen.frames[1]?.frame.buffer.byteLength).toBe(10);
  expect(seen.frames[2]?.frame.byteLength).toBe(0);
  expect(Buffer.from(seen.frames[3]?.frame ?? []).toString()).toBe('pooled');
});

test('grants of one turn leave as one credit per channel; a large one leaves at once', async () => {
  const [a, b] = pair();
  const seen = listening(a);
  for (let i = 0; i < 100; i++) b.grant(0, i % 2, 10);
  b.grant(0, 5, 1_000_000);
  await expect.poll(() => seen.credits.length).toBe(3);
  expect(seen.credits).toEqual([
    { to: 1, edge: 5, bytes: 1_000_000 },
    { to: 1, edge: 0, bytes: 500 },
    { to: 1, edge: 1, bytes: 500 },
  ]);
});

test('a peer that finishes breaks nobody and its last credits still count', async () => {
  const [a, b] = pair();
  const seen = listening(a);
  b.send(0, 0, Uint8Array.of(1));
  b.grant(0, 0, 42);
  b.close();
  await expect.poll(() => seen.credits).toEqual([{ to: 1, edge: 0, bytes: 42 }]);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(seen.frames).toHaveLength(1);
  expect(seen.broken).toEqual([]);
});

test('a peer that fails breaks the others once, with its reason', async () => {
  const [a, b] = pair();
  const seen = listening(a);
  b.close(new MillraceError('attempt-fenced', 'newer'));
  b.close();
  await expect.poll(() => seen.broken.length).toBe(1);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(seen.broken).toMatchObject([{ peer: 1, reason: { code: 'attempt-fenced', message: 'newer' } }]);
});
