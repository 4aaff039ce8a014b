import { MillraceError, SeededRandom } from '@millrace/kernel';
import { msgpack } from '@millrace/state';
import { describe, expect, it } from 'vitest';
import { elementKind } from './elements.ts';
import { FrameReader } from './frame-reader.ts';
import { FrameWriter } from './frame-writer.ts';

/** `MILLRACE_CASES` raises the count, `MILLRACE_SEED` replays one case. */
const cases = Number(process.env.MILLRACE_CASES ?? 300);
const only = process.env.MILLRACE_SEED;
const seeds = only === undefined ? Array.from({ length: cases }, (_, i) => i + 1) : [Number(only)];
const codec = msgpack<unknown>() as never;

type Element = readonly [kind: number, value: unknown, timestampMs: number];

function randomElement(random: SeededRandom): Element {
  switch (random.below(8)) {
    case 0:
      return [elementKind.watermark, undefined, random.below(2) === 0 ? Number.POSITIVE_INFINITY : random.nextU32()];
    case 1:
      return [elementKind.status, random.below(2) === 0, 0];
    case 2: {
      const parent = random.below(2) === 0 ? undefined : `00-${random.hex(16)}-${random.hex(8)}-01`;
      return [elementKind.barrier, { checkpoint: random.nextU32() * 1000, parent }, 0];
    }
    case 3:
      return [elementKind.end, undefined, 0];
    default: {
      const value = { id: random.nextU32(), text: random.hex(random.below(60)), none: null };
      return [elementKind.record, value, random.below(5) === 0 ? Number.NEGATIVE_INFINITY : random.float() * 1e12];
    }
  }
}

function write(writer: FrameWriter, [kind, value, timestampMs]: Element): void {
  if (kind === elementKind.record) writer.record(value, timestampMs);
  else if (kind === elementKind.watermark) writer.watermark(timestampMs);
  else if (kind === elementKind.status) writer.status(value as boolean);
  else if (kind === elementKind.barrier) writer.barrier(value as never);
  else writer.end();
}

function readAll(frames: readonly Uint8Array[]): Element[] {
  const reader = new FrameReader(codec);
  const elements: Element[] = [];
  for (const frame of frames) {
    reader.start(frame);
    while (!reader.done) {
      const kind = reader.next();
      const hasTime = kind === elementKind.record || kind === elementKind.watermark;
      const hasValue = kind !== elementKind.watermark && kind !== elementKind.end;
      elements.push([kind, hasValue ? reader.value : undefined, hasTime ? reader.timestampMs : 0]);
    }
  }
  return elements;
}

describe('frames', () => {
  it('carry every element in order; of neighbouring watermarks in a frame the last', () => {
    for (const seed of seeds) {
      const random = new SeededRandom(seed);
      const writer = new FrameWriter(codec, 1 + random.below(300));
      const frames: Uint8Array[] = [];
      const expected: Element[] = [];
      let fresh = true;
      for (let i = random.below(100); i >= 0; i--) {
        const element = randomElement(random);
        const replaces =
          !fresh && element[0] === elementKind.watermark && expected.at(-1)?.[0] === elementKind.watermark;
        if (replaces) expected.pop();
        expected.push(element);
        write(writer, element);
        fresh = random.below(5) === 0;
        if (fresh) frames.push(writer.take());
      }
      if (writer.bytes > 0) frames.push(writer.take());
      expect(readAll(frames), `MILLRACE_SEED=${seed}`).toEqual(expected);
    }
  });

  it('leave out a record that cannot be written, whole', () => {
    const refusing = {
      format: 'test',
      encode: (value: unknown, out: { u32le(value: number): void }) => {
        out.u32le(7);
        if (value === 'bad') throw new Error('cannot be written');
      },
      decode: (input: { u32le(): number }) => input.u32le(),
    } as never;
    const writer = new FrameWriter(refusing, 100);
    writer.record('good', 1);
    const before = writer.bytes;
    expect(() => writer.record('bad', 2)).toThrow('cannot be written');
    expect(writer.bytes).toBe(before);
  });

  it('refuse bytes that are no frame', () => {
    const reader = new FrameReader(codec);
    reader.start(new Uint8Array([9]));
    expect(() => reader.next()).toThrow(MillraceError);
    reader.start(new Uint8Array([1, 0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0, 0]));
    expect(() => reader.next()).toThrow(/runs over the end/);
  });
});
