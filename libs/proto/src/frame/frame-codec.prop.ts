import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { SeededRandom } from '@millrace/kernel';
import { expect, test } from 'vitest';
import { FrameSchema } from '../gen/millrace/v1/runner_pb.js';
import { decodeFrame, encodeFrame } from './frame-codec.ts';

const seed = Number(process.env.MILLRACE_SEED ?? 20261130);
const cases = Number(process.env.MILLRACE_CASES ?? 150);
const interesting = [0, 1, 127, 128, 16383, 16384, 2 ** 21, 2 ** 28, 2 ** 31, 2 ** 32 - 1];

test(`frames by hand are the generated code's frames, both ways (seed ${seed})`, () => {
  const random = new SeededRandom(seed);
  const number = (): number =>
    random.below(2) === 0 ? (interesting[random.below(interesting.length)] as number) : random.nextU32();
  for (let i = 0; i < cases; i++) {
    const payload = new Uint8Array(random.below(4) === 0 ? 0 : random.below(40_000));
    for (let at = 0; at < payload.length; at += 97) payload[at] = random.below(256);
    const frame = { fromSlot: number(), toSlot: number(), edge: number(), payload };
    const generated = toBinary(FrameSchema, create(FrameSchema, frame));
    const ours = encodeFrame(frame);
    expect(Buffer.compare(ours, generated)).toBe(0);
    expect(decodeFrame(generated)).toEqual(frame);
    expect(fromBinary(FrameSchema, new Uint8Array(ours))).toEqual(create(FrameSchema, frame));
  }
});

test('a decoded payload is a view of the message, no copy', () => {
  const bytes = encodeFrame({ fromSlot: 1, toSlot: 2, edge: 3, payload: new Uint8Array(100_000) });
  expect(decodeFrame(bytes).payload.buffer).toBe(bytes.buffer);
});

test('a field of a later version is passed over', () => {
  const bytes = encodeFrame({ fromSlot: 1, toSlot: 2, edge: 3, payload: Uint8Array.of(9) });
  const extra = Buffer.concat([Buffer.from([(15 << 3) | 2, 2, 7, 7]), Buffer.from([(14 << 3) | 0, 0x80, 1]), bytes]);
  expect(decodeFrame(extra)).toEqual({ fromSlot: 1, toSlot: 2, edge: 3, payload: Uint8Array.of(9) });
});

test('a frame cut short is refused at every length', () => {
  const bytes = encodeFrame({ fromSlot: 300, toSlot: 2, edge: 3, payload: Uint8Array.of(1, 2, 3, 4) });
  const whole = [0, 3, 5, 7]; // between two fields
  for (let n = 1; n < bytes.length; n++) {
    if (whole.includes(n)) continue;
    expect(() => decodeFrame(bytes.subarray(0, n)), `${n} bytes`).toThrow(/cut short/);
  }
});
