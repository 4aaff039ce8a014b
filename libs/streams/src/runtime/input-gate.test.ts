import { describe, expect, it } from 'vitest';
import { jsonCodec } from '../testing/fixture-operators.ts';
import { ElementQueue } from './element-queue.ts';
import { elementKind } from './elements.ts';
import { InputChannel } from './input-channel.ts';
import { InputGate } from './input-gate.ts';

class Channel extends InputChannel {
  readonly codec = jsonCodec;
  protected readonly captureBytesMax = 1;
  available = true;
  advance(): 0 {
    return 0;
  }
  protected copyWaiting(): void {}
}

function gateOf(count: number): { gate: InputGate; channels: Channel[] } {
  const channels = Array.from({ length: count }, (_, slot) => new Channel(0, 0, slot));
  return { gate: new InputGate(channels), channels };
}

/** The gate's watermark after `change`. */
function after(gate: InputGate, change: () => void): number {
  change();
  gate.updateStatus();
  gate.updateWatermark();
  return gate.watermarkMs;
}

describe('the watermark over several channels', () => {
  it('is the smallest of the active ones and never falls', () => {
    const { gate, channels } = gateOf(2);
    const [a, b] = channels as [Channel, Channel];
    expect(after(gate, () => void (a.watermarkMs = 10))).toBe(Number.NEGATIVE_INFINITY);
    expect(after(gate, () => void (b.watermarkMs = 5))).toBe(5);
    expect(after(gate, () => void (b.idle = true))).toBe(10);
    expect(after(gate, () => void (b.idle = false))).toBe(10);
    expect(after(gate, () => void (b.watermarkMs = 12))).toBe(10);
  });

  it('does not depend on which channel went idle first', () => {
    const results = [
      [0, 1],
      [1, 0],
    ].map((order) => {
      const { gate, channels } = gateOf(2);
      const [a, b] = channels as [Channel, Channel];
      a.watermarkMs = 10;
      b.watermarkMs = 20;
      for (const i of order) after(gate, () => void ((channels[i] as Channel).idle = true));
      return [gate.watermarkMs, gate.idle];
    });
    expect(results).toEqual([
      [20, true],
      [20, true],
    ]);
  });

  it('is +∞ when all have ended, and an idle one that has ended holds nothing back', () => {
    const { gate, channels } = gateOf(2);
    const [a, b] = channels as [Channel, Channel];
    a.watermarkMs = 10;
    expect(after(gate, () => void gate.end(b))).toBe(10);
    a.idle = true;
    expect(after(gate, () => undefined)).toBe(10);
    expect(gate.idle).toBe(true);
    expect(after(gate, () => void gate.end(a))).toBe(Number.POSITIVE_INFINITY);
    expect(gate.ended).toBe(true);
  });
});

describe('the end of time', () => {
  it('does not come while an idle channel has not ended: its windows are still to come', () => {
    const { gate, channels } = gateOf(2);
    const [a, b] = channels as [Channel, Channel];
    a.watermarkMs = 10;
    b.watermarkMs = 5;
    b.idle = true;
    expect(after(gate, () => undefined)).toBe(10);
    expect(after(gate, () => void (a.watermarkMs = Number.POSITIVE_INFINITY))).toBe(10);
    b.idle = false;
    expect(after(gate, () => void (b.watermarkMs = Number.POSITIVE_INFINITY))).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('alignment', () => {
  it('reads no channel behind its barrier until the last one has it', () => {
    const { gate, channels } = gateOf(3);
    const [a, b, c] = channels as [Channel, Channel, Channel];
    gate.arrive(a, { checkpoint: 1 }, 0);
    expect([gate.pick(), gate.pick(), gate.pick()].includes(a)).toBe(false);
    gate.end(b);
    expect(gate.aligned).toBe(false);
    gate.arrive(c, { checkpoint: 1 }, 1);
    expect(gate.aligned).toBe(true);
    gate.release();
    expect([gate.pick(), gate.pick(), gate.pick()].includes(a)).toBe(true);
    expect(gate.aligned).toBe(false);
  });

  it('begins anew with a newer barrier', () => {
    const { gate, channels } = gateOf(2);
    const [a, b] = channels as [Channel, Channel];
    gate.arrive(a, { checkpoint: 1 }, 0);
    gate.arrive(b, { checkpoint: 2 }, 5);
    expect(gate.barrier?.checkpoint).toBe(2);
    expect([a.blocked, b.blocked]).toEqual([false, true]);
    gate.arrive(a, { checkpoint: 2 }, 6);
    expect(gate.aligned).toBe(true);
  });

  it('gives every channel its turn', () => {
    const { gate, channels } = gateOf(3);
    const picked = Array.from({ length: 6 }, () => (gate.pick() as Channel | undefined)?.fromSlot);
    expect(picked).toEqual([0, 1, 2, 0, 1, 2]);
    (channels[1] as Channel).available = false;
    expect(Array.from({ length: 4 }, () => (gate.pick() as Channel | undefined)?.fromSlot)).toEqual([0, 2, 0, 2]);
  });
});

describe('a queue of elements', () => {
  it('keeps the order while it grows and wraps, and only the newest of neighbouring watermarks', () => {
    const queue = new ElementQueue(16);
    const got: number[] = [];
    let next = 0;
    for (let round = 0; round < 50; round++) {
      for (let i = 0; i < 7; i++) queue.push(elementKind.record, next, next++);
      for (let i = 0; i < 5; i++) {
        expect(queue.shift()).toBe(elementKind.record);
        got.push(queue.value as number);
      }
    }
    while (queue.size > 0) {
      queue.shift();
      got.push(queue.value as number);
    }
    expect(got).toEqual(Array.from({ length: next }, (_, i) => i));
    queue.pushWatermark(1);
    queue.pushWatermark(2);
    expect([queue.size, queue.shift(), queue.timestampMs]).toEqual([1, elementKind.watermark, 2]);
    expect(queue.shift()).toBe(elementKind.none);
  });
});
