/*
 * The benchmark: for each record, read and write a count and overwrite a payload, by key. Written for speed: the handler
 * returns no promise when its state is at hand.
 */
import { bytes, discard, generator, int64, job, jsonLines, msgpack, type Sink, struct, value } from '@millrace/streams';
import { z } from 'zod';
import { pick } from '../mix.ts';

const options = z.strictObject({
  keys: z.int().positive().default(100_000),
  /** 0: without end. */
  records: z.int().min(0).default(1_000_000),
  payloadBytes: z.int().min(0).max(1_000_000).default(100),
  /** The first records are one of each key. */
  fill: z.boolean().default(false),
  /** Read the old payload, too, before it is replaced. */
  readBoth: z.boolean().default(false),
  recordsPerSecond: z.number().positive().optional(),
  /** A directory for the counts; without it they are counted and forgotten. */
  output: z.string().min(1).optional(),
  overwrite: z.boolean().default(false),
});

const seed = 42;

export interface Count {
  readonly key: number;
  readonly count: number;
}

export function keyOfRecord(index: number, keys: number, fill: boolean): number {
  return fill && index < keys ? index : pick(index, seed, keys);
}

const slabWords = 16_384;

/**
 * Bytes that do not compress (xorshift32), as views of larger pieces of memory: a typed array with memory of its own
 * costs the engine a microsecond.
 */
function payloads(size: number): (index: number) => Uint8Array {
  const words = (size + 3) >>> 2;
  let slab = new Uint32Array(Math.max(slabWords, words));
  let used = 0;
  return (index) => {
    if (used + words > slab.length) {
      slab = new Uint32Array(slab.length);
      used = 0;
    }
    const start = used;
    used += words;
    let x = (index + 1) | 0;
    for (let i = start; i < used; i++) {
      x ^= x << 13;
      x ^= x >>> 17;
      x ^= x << 5;
      slab[i] = x;
    }
    return new Uint8Array(slab.buffer, start * 4, size);
  };
}

export default job('wordcount', { options }, (flow, o) => {
  const sink: Sink<Count> =
    o.output === undefined ? discard() : jsonLines({ directory: o.output, overwrite: o.overwrite });
  const payloadOf = payloads(o.payloadBytes);
  flow
    .from(
      generator({
        record: (index) => ({ key: keyOfRecord(index, o.keys, o.fill), payload: payloadOf(index) }),
        ...(o.records === 0 ? {} : { records: o.records }),
        recordsPerSecond: o.recordsPerSecond,
        codec: struct({ key: int64, payload: bytes }),
      }),
      { uid: 'records' },
    )
    .keyBy((record) => record.key)
    .process({
      uid: 'count',
      state: { count: value(int64), payload: value(bytes) },
      output: msgpack<Count>(),
      onRecord({ key, payload }, ctx) {
        const { count, payload: last } = ctx.state;
        const step = (old: number | undefined): void => {
          const next = (old ?? 0) + 1;
          count.set(next);
          last.set(payload);
          ctx.emit({ key, count: next });
        };
        const old = count.get();
        const oldPayload = o.readBoth ? last.get() : undefined;
        if (old instanceof Promise || oldPayload instanceof Promise) {
          return Promise.all([old, oldPayload]).then(([counted]) => step(counted));
        }
        return step(old);
      },
    })
    .to(sink, { uid: 'counts' });
});
