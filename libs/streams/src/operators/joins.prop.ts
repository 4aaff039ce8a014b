/* Joins against loops over all records: random records, latencies, limits, crashes and restores at 1 → 3 → 2. */
import { SeededRandom } from '@millrace/kernel';
import { msgpack, string } from '@millrace/state';
import { describe, expect, it } from 'vitest';
import type { Change } from '../api/change.ts';
import type { Flow } from '../api/flow.ts';
import { job } from '../api/job.ts';
import type { JoinKind, JoinWindows, OuterKind } from '../api/joins.ts';
import type { KeyedStream } from '../api/keyed-stream.ts';
import { boundedOutOfOrderness } from '../api/watermarks.ts';
import { cumulative, session, sliding, tumbling } from '../api/windows.ts';
import { buildGraph } from '../graph/build-graph.ts';
import { callback, collect } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import { forSeeds, randomRun, randomSeeds } from '../testing/random-run.ts';

const seeds = randomSeeds(40);
const disorderMs = 50;

interface Line {
  readonly n: number;
  readonly side: 'left' | 'right';
  readonly key: string;
  /** Lines of one side, key and id replace each other. */
  readonly id: string;
  readonly timeMs: number;
}

function randomLines(random: SeededRandom): Line[] {
  const keys = 1 + random.below(8);
  const ids = 1 + random.below(6);
  const lefts = 1 + random.below(9);
  return Array.from({ length: random.below(160) }, (_, n) => ({
    n,
    side: random.below(10) < lefts ? 'left' : 'right',
    key: `k${random.below(keys)}`,
    id: `${random.below(ids)}`,
    timeMs: n * 10 - random.below(disorderMs),
  }));
}

type Sides = [left: KeyedStream<string, Line>, right: KeyedStream<string, Line>];

/** Both sides of the lines, from one source; in one split their order is kept. */
function sides(flow: Flow, lines: readonly Line[], splits: number): KeyedStream<string, Line>[] {
  const all = flow.from(generator({ record: (i) => lines[i] as Line, records: lines.length, splits }), {
    uid: 'lines',
    timestamp: (line) => line.timeMs,
    watermarks: boundedOutOfOrderness(disorderMs, { interval: 0 }),
  });
  return (['left', 'right'] as const).map((side) => all.filter((line) => line.side === side).keyBy((line) => line.key));
}

const paired = (l: Line | undefined, r: Line | undefined): string => `${l?.n ?? '-'} ${r?.n ?? '-'}`;

/** All pairs that `match`, and by `kind` the lines without one. */
function expectedPairs(
  lines: readonly Line[],
  kind: JoinKind,
  match: (l: Line, r: Line) => boolean,
): [Line | undefined, Line | undefined][] {
  const lefts = lines.filter((line) => line.side === 'left');
  const rights = lines.filter((line) => line.side === 'right');
  const matches = (l: Line, r: Line): boolean => l.key === r.key && match(l, r);
  const rows: [Line | undefined, Line | undefined][] = lefts.flatMap((l) =>
    rights.filter((r) => matches(l, r)).map((r): [Line, Line] => [l, r]),
  );
  if (kind === 'left' || kind === 'full') {
    for (const l of lefts) if (!rights.some((r) => matches(l, r))) rows.push([l, undefined]);
  }
  if (kind === 'right' || kind === 'full') {
    for (const r of rights) if (!lefts.some((l) => matches(l, r))) rows.push([undefined, r]);
  }
  return rows;
}

function randomWindows(random: SeededRandom): JoinWindows<Line> {
  const sizeMs = 1 + random.below(400);
  switch (random.below(4)) {
    case 0:
      return tumbling(sizeMs, { offset: random.below(100) });
    case 1:
      return sliding(sizeMs, 1 + Math.floor(sizeMs / 4) + random.below(100));
    case 2:
      return cumulative(sizeMs * 3, sizeMs);
    default:
      return session(1 + random.below(60));
  }
}

/** Every window, as [start, end), in which one of the lines of a key can be. */
function windowsOf(lines: readonly Line[], windows: JoinWindows<Line>): [number, number][] {
  const times = lines.map((line) => line.timeMs).toSorted((a, b) => a - b);
  const found: [number, number][] = [];
  if (windows.kind === 'session') {
    for (const timeMs of times) {
      const last = found.at(-1);
      const endMs = timeMs + windows.gapMs(lines[0] as Line);
      if (last !== undefined && timeMs < last[1]) last[1] = endMs;
      else found.push([timeMs, endMs]);
    }
    return found;
  }
  const { sizeMs, offsetMs } = windows;
  const everyMs = windows.kind === 'sliding' ? windows.everyMs : sizeMs;
  const stepMs = windows.kind === 'cumulative' ? windows.stepMs : sizeMs;
  const firstMs = Math.floor(((times[0] ?? 0) - offsetMs - sizeMs) / everyMs) * everyMs + offsetMs;
  for (let startMs = firstMs; startMs <= (times.at(-1) ?? 0); startMs += everyMs) {
    for (let endMs = startMs + stepMs; endMs <= startMs + sizeMs; endMs += stepMs) found.push([startMs, endMs]);
  }
  return found;
}

const joinKinds: readonly JoinKind[] = ['inner', 'left', 'right', 'full'];

describe(`random records (${seeds.length} cases each)`, () => {
  it('an outer join describes the joined table by its changes, at every moment', () =>
    forSeeds(seeds, async (seed) => {
      const random = new SeededRandom(seed);
      const lines = randomLines(random);
      const kind = (['left', 'right', 'full'] as const)[random.below(3)] as OuterKind;
      const out: Change<string>[] = [];
      const graph = buildGraph(
        job('test', (flow) => {
          const [left, right] = sides(flow, lines, 1) as Sides;
          left
            .outerJoin(right, {
              uid: 'join',
              kind,
              left: { codec: msgpack<Line>(), id: (line) => line.id },
              right: { codec: msgpack<Line>(), id: (line) => line.id },
              output: string,
              pair: (l, r) => paired(l, r),
            })
            .to(collect(out));
        }),
      );
      await randomRun(graph, [out], random);
      const table = new Map<string, number>();
      for (const { op, value } of out) {
        const count = (table.get(value) ?? 0) + (op === 'insert' ? 1 : -1);
        expect(count, `${op} ${value}`).toBeGreaterThanOrEqual(0);
        table.set(value, count);
      }
      const rows = [...table].flatMap(([row, count]) => Array.from({ length: count }, () => row));
      const last = lines.filter(
        (line) => !lines.some((o) => o.n > line.n && o.side === line.side && o.key === line.key && o.id === line.id),
      );
      const expected = expectedPairs(last, kind, () => true).map(([l, r]) => paired(l, r));
      expect(rows.toSorted()).toEqual(expected.toSorted());
    }));

  it('an interval join emits each pair, and each record without partner, once and in time', () =>
    forSeeds(seeds, async (seed) => {
      const random = new SeededRandom(seed);
      const lines = randomLines(random);
      const kind = joinKinds[random.below(4)] as JoinKind;
      const lower = random.below(300) - 200;
      const upper = lower + random.below(300);
      const out: string[] = [];
      const graph = buildGraph(
        job('test', (flow) => {
          const [left, right] = sides(flow, lines, 1 + random.below(5)) as Sides;
          left
            .intervalJoin(right, {
              uid: 'near',
              kind,
              lower,
              upper,
              left: msgpack<Line>(),
              right: msgpack<Line>(),
              output: string,
              pair: (l, r) => paired(l, r),
            })
            .to(callback((row, timeMs) => void out.push(`${row} at ${timeMs}`)));
        }),
      );
      await randomRun(graph, [out], random);
      const expected = expectedPairs(lines, kind, (l, r) => {
        const apartMs = r.timeMs - l.timeMs;
        return apartMs >= lower && apartMs <= upper;
      }).map(([l, r]) => {
        const certainMs =
          l === undefined
            ? (r as Line).timeMs + Math.max(0, -lower)
            : r === undefined
              ? l.timeMs + Math.max(0, upper)
              : Math.max(l.timeMs, r.timeMs);
        return `${paired(l, r)} at ${certainMs}`;
      });
      expect(out.toSorted()).toEqual(expected.toSorted());
    }));

  it('a window join emits the pairs of each window once, when it is over', () =>
    forSeeds(seeds, async (seed) => {
      const random = new SeededRandom(seed);
      const lines = randomLines(random);
      const kind = joinKinds[random.below(4)] as JoinKind;
      const windows = randomWindows(random);
      const out: string[] = [];
      const graph = buildGraph(
        job('test', (flow) => {
          const [left, right] = sides(flow, lines, 1 + random.below(5)) as Sides;
          left
            .windowJoin(right, windows, {
              uid: 'windows',
              kind,
              left: msgpack<Line>(),
              right: msgpack<Line>(),
              output: string,
              pair: (l, r, key, { startMs, endMs }) => `${paired(l, r)} ${key} ${startMs}-${endMs}`,
            })
            .to(callback((row, timeMs) => void out.push(`${row} at ${timeMs}`)));
        }),
      );
      await randomRun(graph, [out], random);
      const expected: string[] = [];
      for (const key of new Set(lines.map((line) => line.key))) {
        const own = lines.filter((line) => line.key === key);
        for (const [startMs, endMs] of windowsOf(own, windows)) {
          const held = own.filter((line) => line.timeMs >= startMs && line.timeMs < endMs);
          for (const [l, r] of expectedPairs(held, kind, () => true)) {
            expected.push(`${paired(l, r)} ${key} ${startMs}-${endMs} at ${endMs - 1}`);
          }
        }
      }
      expect(out.toSorted()).toEqual(expected.toSorted());
    }));

  it('a join pairs each two records of a key once, whichever comes first', () =>
    forSeeds(seeds, async (seed) => {
      const random = new SeededRandom(seed);
      const lines = randomLines(random);
      const out: string[] = [];
      const graph = buildGraph(
        job('test', (flow) => {
          const [left, right] = sides(flow, lines, 1 + random.below(5)) as Sides;
          left
            .join(right, {
              uid: 'join',
              left: { codec: msgpack<Line>(), id: (line) => `${line.n}` },
              right: { codec: msgpack<Line>(), id: (line) => `${line.n}` },
              output: string,
              pair: (l, r) => paired(l, r),
            })
            .to(collect(out));
        }),
      );
      await randomRun(graph, [out], random);
      const expected = expectedPairs(lines, 'inner', () => true).map(([l, r]) => paired(l, r));
      expect(out.toSorted()).toEqual(expected.toSorted());
    }));
});
