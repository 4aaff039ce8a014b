/* What joins do with late records, with idle inputs and with time to live. */
import { type Clock, systemClock } from '@millrace/kernel';
import { msgpack, string } from '@millrace/state';
import { describe, expect, it } from 'vitest';
import type { Change } from '../api/change.ts';
import type { Flow } from '../api/flow.ts';
import { job } from '../api/job.ts';
import type { KeyedStream } from '../api/keyed-stream.ts';
import { sideTag } from '../api/side-tag.ts';
import { boundedOutOfOrderness } from '../api/watermarks.ts';
import { type SessionWindows, session, type TumblingWindows, tumbling } from '../api/windows.ts';
import { buildGraph } from '../graph/build-graph.ts';
import { collect } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import { TestRun } from '../testing/test-run.ts';

interface Line {
  readonly side: 'left' | 'right';
  readonly id: string;
  readonly timeMs: number;
}

const left = (id: string, timeMs: number): Line => ({ side: 'left', id, timeMs });
const right = (id: string, timeMs: number): Line => ({ side: 'right', id, timeMs });

/** Both sides of one source, read one line at a time. */
function sides(flow: Flow, lines: readonly Line[]): [KeyedStream<string, Line>, KeyedStream<string, Line>] {
  const all = flow.from(generator({ record: (i) => lines[i] as Line, records: lines.length, splits: 1 }), {
    uid: 'lines',
    timestamp: (line) => line.timeMs,
    watermarks: boundedOutOfOrderness(0, { interval: 0 }),
  });
  const side = (name: Line['side']): KeyedStream<string, Line> =>
    all.filter((line) => line.side === name).keyBy(() => 'all');
  return [side('left'), side('right')];
}

const lateLeft = sideTag<Line>('late-left');
const lateRight = sideTag<Line>('late-right');
const codecs = { left: msgpack<Line>(), right: msgpack<Line>(), output: string };
const paired = (l: Line | undefined, r: Line | undefined): string => `${l?.id ?? '-'} ${r?.id ?? '-'}`;
const ids = (lines: readonly Line[]): string[] => lines.map((line) => line.id);

describe('late records', () => {
  it.each([
    [0, ['a x'], ['late', 'b'], ['y']],
    [60, ['a x', 'b x'], ['late'], ['y']],
  ])('of an interval join go to the side output of their side, allowed %i ms', async (latenessMs, pairs, l, r) => {
    const [out, lefts, rights]: [string[], Line[], Line[]] = [[], [], []];
    const lines = [
      left('a', 100),
      right('x', 110),
      left('b', 90),
      left('late', 10),
      right('far', 500),
      right('y', 400),
    ];
    const graph = buildGraph(
      job('test', (flow) => {
        const [one, other] = sides(flow, lines);
        const joined = one.intervalJoin(other, {
          ...codecs,
          lower: -20,
          upper: 20,
          allowedLateness: latenessMs,
          late: { left: lateLeft, right: lateRight },
          pair: paired,
        });
        joined.to(collect(out));
        joined.sideOutput(lateLeft).to(collect(lefts));
        joined.sideOutput(lateRight).to(collect(rights));
      }),
    );
    const run = await TestRun.start(graph);
    while (!(await run.step(1, 1)));
    await run.finish();
    expect([out.toSorted(), ids(lefts).toSorted(), ids(rights)]).toEqual([pairs, l.toSorted(), r]);
  });

  it.each([
    ['tumbling', tumbling(100)],
    ['session', session<Line>(50)],
  ] as const)('of a window join (%s) go to the side output of their side', async (_name, windows) => {
    const [out, lefts]: [string[], Line[]] = [[], []];
    const lines = [left('a', 10), right('x', 20), right('far', 500), left('late', 30), left('b', 510)];
    const graph = buildGraph(
      job('test', (flow) => {
        const [one, other] = sides(flow, lines);
        const joined = one.windowJoin(other, windows as TumblingWindows | SessionWindows<Line>, {
          ...codecs,
          late: { left: lateLeft },
          pair: paired,
        });
        joined.to(collect(out));
        joined.sideOutput(lateLeft).to(collect(lefts));
      }),
    );
    const run = await TestRun.start(graph);
    while (!(await run.step(1, 1)));
    await run.finish();
    expect([out, ids(lefts)]).toEqual([['a x', 'b far'], ['late']]);
  });

  it('are refused a side output by windows of processing time, for which none is late', () => {
    const build = (): unknown =>
      buildGraph(
        job('test', (flow) => {
          const [one, other] = sides(flow, []);
          const windows = tumbling(100, { time: 'processing' });
          one.windowJoin(other, windows, { ...codecs, uid: 'w', late: { left: lateLeft }, pair: paired });
        }),
      );
    expect(build).toThrow(/w: no record is late for windows of processing time/);
  });
});

describe('an outer join', () => {
  it('takes back exactly what it has inserted when a partner comes after another has outlived its time', async () => {
    let nowMs = 1_000_000;
    const clock: Clock = { ...systemClock, nowMs: () => nowMs };
    const out: Change<string>[] = [];
    const lines = [right('x', 1), left('a', 2), right('y', 3), left('b', 4)];
    const graph = buildGraph(
      job('test', (flow) => {
        const [one, other] = sides(flow, lines);
        const byId = { codec: msgpack<Line>(), id: (line: Line) => line.id };
        one
          .outerJoin(other, { kind: 'left', left: byId, right: byId, ttl: 1000, output: string, pair: paired })
          .to(collect(out));
      }),
    );
    const run = await TestRun.start(graph, { clock });
    for (const waitMs of [0, 600, 600, 5000]) {
      nowMs += waitMs;
      await run.step(1, 1);
    }
    await run.finish();
    expect(out.map(({ op, value }) => `${op} ${value}`)).toEqual(['insert a x', 'insert a y', 'insert b -']);
  });
});
