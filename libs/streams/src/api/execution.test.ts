import { int64, msgpack, string } from '@millrace/state';
import { describe, expect, it } from 'vitest';
import { buildGraph } from '../graph/build-graph.ts';
import { discard } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import type { Execution } from './execution.ts';
import type { Flow } from './flow.ts';
import { job } from './job.ts';
import type { KeyedStream } from './keyed-stream.ts';
import type { Stream } from './stream.ts';
import { tumbling } from './windows.ts';

const numbers = (flow: Flow): Stream<number> => flow.from(generator({ record: (i) => i, records: 10 }));
const keyed = (flow: Flow): KeyedStream<number, number> => numbers(flow).keyBy((n) => n % 3);
const build = (describeJob: (flow: Flow) => void): void => void buildGraph(job('execution', describeJob));
const end = (stream: unknown): void => (stream as Stream<unknown>).to(discard());

describe('an operator may say how its records overlap', () => {
  it.each<Execution>(['synchronous', {}, { inFlightLimit: 1, watermarks: 'parallel' }])('%j is taken', (execution) => {
    const described = (flow: Flow): void => end(keyed(flow).process({ execution, onRecord: () => undefined }));
    expect(() => build(described)).not.toThrow();
  });

  it.each<[unknown, RegExp]>([
    ['sync', /counts: execution is "sync"; it is 'synchronous' or/],
    [{ inFlightLimit: 0 }, /counts: execution.inFlightLimit is 0; it is a whole number of at least 1/],
    [{ watermarks: 'unordered' }, /counts: execution.watermarks is "unordered"; it is 'serial' or 'parallel'/],
    [{ mode: 'synchronous' }, /counts: execution has no option mode/],
  ])('%j is refused when the job is built, in words', (execution, message) => {
    const options = { uid: 'counts', execution: execution as Execution };
    expect(() =>
      build((flow) =>
        keyed(flow)
          .process({ ...options, onRecord: () => undefined })
          .to(discard()),
      ),
    ).toThrow(message);
  });

  it('also windows, joins and aggregates take it', () => {
    const options = { uid: 'counts', execution: { inFlightLimit: -1 } };
    const counted = {
      accumulator: int64,
      output: int64,
      create: () => 0,
      add: (count: number) => count + 1,
      result: (count: number) => count,
    };
    const sides = { left: { codec: int64 }, right: { codec: int64 }, output: string, pair: () => '' };
    for (const described of [
      (stream: KeyedStream<number, number>) => stream.aggregate({ ...options, ...counted }),
      (stream: KeyedStream<number, number>) => stream.reduce((a, b) => a + b, options),
      (stream: KeyedStream<number, number>) => stream.window(tumbling(10), options).aggregate(counted),
      (stream: KeyedStream<number, number>) => stream.join(stream, { ...options, ...sides }),
      (stream: KeyedStream<number, number>) =>
        stream.connect(stream).process({ ...options, onLeft: () => undefined, onRight: () => undefined }),
    ]) {
      expect(() => build((flow) => end(described(keyed(flow))))).toThrow(/counts: execution.inFlightLimit/);
    }
  });
});

describe('an asynchronous function where only a synchronous one can be called is refused when the job is built', () => {
  const later = (async () => Promise.resolve(1)) as unknown as () => number;
  const refused: Record<string, (flow: Flow) => unknown> = {
    'keyBy takes a synchronous function;': (flow) => numbers(flow).keyBy(later).reduce(Math.max),
    'flat-map takes a synchronous function;': (flow) => numbers(flow).flatMap(later as never),
    'reduce takes a synchronous function;': (flow) => keyed(flow).reduce(later),
    'aggregate takes a synchronous function as add;': (flow) =>
      keyed(flow).aggregate({ accumulator: int64, output: int64, create: () => 0, add: later, result: Number }),
    'join takes a synchronous function as pair;': (flow) =>
      keyed(flow).join(keyed(flow), {
        left: { codec: int64 },
        right: { codec: int64 },
        output: msgpack<number>(),
        pair: later,
      }),
    'intervalJoin takes a synchronous function as pair;': (flow) =>
      keyed(flow).intervalJoin(keyed(flow), {
        lower: 0,
        upper: 1,
        left: int64,
        right: int64,
        output: msgpack<number>(),
        pair: later,
      }),
  };
  it.each(Object.keys(refused))('%s await inside process', (message) => {
    expect(() => build((flow) => end(refused[message]?.(flow)))).toThrow(
      `${message} await inside process({ onRecord }) after keyBy`,
    );
  });
});
