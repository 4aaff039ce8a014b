/* Deduplicate, top-N, reduce, aggregate, broadcast state and side outputs against plain loops, through restores. */
import { SeededRandom } from '@millrace/kernel';
import { int64, map, msgpack, string, value } from '@millrace/state';
import { describe, expect, it } from 'vitest';
import type { BroadcastMaps } from '../api/broadcast.ts';
import type { Flow } from '../api/flow.ts';
import { job } from '../api/job.ts';
import { sideTag } from '../api/side-tag.ts';
import type { Stream } from '../api/stream.ts';
import { boundedOutOfOrderness } from '../api/watermarks.ts';
import { buildGraph } from '../graph/build-graph.ts';
import type { JobGraph } from '../graph/job-graph.ts';
import { collect } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import { forSeeds, randomRun, randomSeeds } from '../testing/random-run.ts';
import { TestRun } from '../testing/test-run.ts';
import { BaseOperator } from './base-operator.ts';

const seeds = randomSeeds(25);

interface Line {
  readonly n: number;
  readonly key: string;
  readonly score: number;
  readonly timeMs: number;
}

function randomLines(random: SeededRandom): Line[] {
  const keys = 1 + random.below(6);
  return Array.from({ length: random.below(150) }, (_, n) => ({
    n,
    key: `k${random.below(keys)}`,
    score: random.below(20),
    timeMs: n * 10 - random.below(50),
  }));
}

/** One split, so that the order of arrival is that of the lines. */
function linesOf(flow: Flow, lines: readonly Line[], splits = 1): Stream<Line> {
  return flow.from(generator({ record: (i) => lines[i] as Line, records: lines.length, splits }), {
    uid: 'lines',
    timestamp: (line) => line.timeMs,
    watermarks: boundedOutOfOrderness(50, { interval: 0 }),
  });
}

const graphOf = (build: (flow: Flow) => void): JobGraph => buildGraph(job('test', build));

function byKey<T extends { readonly key: string }>(list: readonly T[]): Map<string, T[]> {
  return Map.groupBy(list, (one) => one.key);
}

/** Of each key the same list; keys may overlap in time. */
function expectByKey<T extends { readonly key: string }>(out: readonly T[], expected: readonly T[]): void {
  expect(Object.fromEntries(byKey(out))).toEqual(Object.fromEntries(byKey(expected)));
}

describe(`random records (${seeds.length} cases each)`, () => {
  it('deduplicate lets the first record of a key through, or each that is not older than the newest', () =>
    forSeeds(seeds, async (seed) => {
      const random = new SeededRandom(seed);
      const lines = randomLines(random);
      const keep = random.below(2) === 0 ? 'first' : 'last';
      const out: Line[] = [];
      const graph = graphOf((flow) =>
        linesOf(flow, lines)
          .keyBy((line) => line.key)
          .deduplicate({ uid: 'once', keep })
          .to(collect(out)),
      );
      await randomRun(graph, [out], random);
      const kept = lines.filter((line) => {
        const before = lines.slice(0, line.n).filter((other) => other.key === line.key);
        return keep === 'first' ? before.length === 0 : before.every((other) => other.timeMs <= line.timeMs);
      });
      expectByKey(out, kept);
    }));

  it('top-N emits the best records of a key whenever they change', () =>
    forSeeds(seeds, async (seed) => {
      const random = new SeededRandom(seed);
      const lines = randomLines(random);
      const n = 1 + random.below(4);
      interface Best {
        readonly key: string;
        readonly best: readonly number[];
      }
      const out: Best[] = [];
      const graph = graphOf((flow) =>
        linesOf(flow, lines)
          .keyBy((line) => line.key)
          .topN({
            uid: 'best',
            n,
            compare: (a, b) => b.score - a.score,
            codec: msgpack<Line>(),
            output: msgpack<Best>(),
            result: (best, key) => ({ key, best: best.map((line) => line.n) }),
          })
          .to(collect(out)),
      );
      await randomRun(graph, [out], random);
      const expected: Best[] = [];
      const last = new Map<string, string>();
      for (const { key, n: at } of lines) {
        const best = lines
          .slice(0, at + 1)
          .filter((line) => line.key === key)
          .toSorted((a, b) => b.score - a.score || a.n - b.n)
          .slice(0, n)
          .map((line) => line.n);
        if (last.get(key) === best.join()) continue;
        last.set(key, best.join());
        expected.push({ key, best });
      }
      expectByKey(out, expected);
    }));

  it('reduce and aggregate emit the running result of a key', () =>
    forSeeds(seeds, async (seed) => {
      const random = new SeededRandom(seed);
      const lines = randomLines(random);
      interface Sum {
        readonly key: string;
        readonly sum: number;
      }
      const [sums, best]: [Sum[], Line[]] = [[], []];
      const graph = graphOf((flow) => {
        const keyed = linesOf(flow, lines).keyBy((line) => line.key);
        keyed
          .aggregate({
            uid: 'sums',
            accumulator: int64,
            output: msgpack<Sum>(),
            create: () => 0,
            add: (sum, line) => sum + line.score,
            result: (sum, key) => ({ key, sum }),
          })
          .to(collect(sums));
        keyed.reduce((a, b) => (b.score > a.score ? b : a), { uid: 'best' }).to(collect(best));
      });
      await randomRun(graph, [sums, best], random);
      const before = ({ n, key }: Line): Line[] => lines.slice(0, n + 1).filter((line) => line.key === key);
      expectByKey(
        sums,
        lines.map((line) => ({ key: line.key, sum: before(line).reduce((sum, one) => sum + one.score, 0) })),
      );
      expectByKey(
        best,
        lines.map((line) => before(line).reduce((a, b) => (b.score > a.score ? b : a))),
      );
    }));

  it('flatMap sends to side outputs, each record to exactly one place', () =>
    forSeeds(seeds, async (seed) => {
      const random = new SeededRandom(seed);
      const lines = randomLines(random);
      const odd = sideTag<number>('odd');
      const [evens, odds]: [number[], number[]] = [[], []];
      const graph = graphOf((flow) => {
        const split = linesOf(flow, lines, 4).flatMap((line, _timeMs, ctx) => {
          if (line.n % 2 === 0) return [line.n, line.n];
          ctx.side(odd, line.n);
          return [];
        });
        split.to(collect(evens));
        split.sideOutput(odd).to(collect(odds));
      });
      await randomRun(graph, [evens, odds], random);
      const all = lines.map((line) => line.n);
      const order = (a: number, b: number): number => a - b;
      expect(evens.toSorted(order)).toEqual(all.filter((n) => n % 2 === 0).flatMap((n) => [n, n]));
      expect(odds.toSorted(order)).toEqual(all.filter((n) => n % 2 === 1));
    }));

  it('partitionBy gives each record to the subtask that it names', () =>
    forSeeds(seeds, async (seed) => {
      const random = new SeededRandom(seed);
      const lines = randomLines(random);
      const out: { n: number; chosen: number; parallelism: number; subtask: number }[] = [];
      const graph = graphOf((flow) => {
        let parallelism = 0;
        linesOf(flow, lines, 4)
          .partitionBy((line, subtasks) => {
            parallelism = subtasks;
            return line.score % subtasks;
          })
          .to({
            kind: 'subtask',
            stateful: false,
            create: () =>
              new (class extends BaseOperator {
                override record(value: unknown): void {
                  const { n, score } = value as Line;
                  out.push({ n, chosen: score % parallelism, parallelism, subtask: this.context.subtask });
                }
              })(),
          });
      });
      await randomRun(graph, [out], random);
      expect(out.map((one) => one.n).toSorted((a, b) => a - b)).toEqual(lines.map((line) => line.n));
      for (const { chosen, subtask } of out) expect(subtask).toBe(chosen);
    }));

  it('partitionBy refuses a subtask that does not exist', async () => {
    const graph = graphOf((flow) =>
      linesOf(flow, randomLines(new SeededRandom(1)))
        .partitionBy((_line, parallelism) => parallelism)
        .to(collect<Line>([])),
    );
    const run = await TestRun.start(graph, { parallelism: 2 });
    await expect(run.toEnd()).rejects.toMatchObject({ code: 'bad-argument' });
  });

  it('broadcast state is the same in every subtask, before and after restores at other parallelisms', () =>
    forSeeds(seeds, async (seed) => {
      const random = new SeededRandom(seed);
      const lines = randomLines(random);
      const rules = Array.from({ length: 20 + random.below(100) }, (_, n) => ({
        n,
        name: `r${random.below(5)}`,
        drop: random.below(4) === 0,
      }));
      interface Seen {
        readonly key: string;
        readonly n: number;
        readonly count: number;
        /** Rule records that the subtask had applied before. */
        readonly applied: number;
        readonly rules: string;
      }
      const [out, plain]: [Seen[], Seen[]] = [[], []];
      const graph = graphOf((flow) => {
        const source = generator({
          record: (i) => rules[i] as (typeof rules)[number],
          records: rules.length,
          splits: 1,
        });
        const broadcast = { rules: map(string, int64), meta: map(string, int64) };
        const rulesStream = flow.from(source, { uid: 'rules', timestamp: () => 0 });
        const show = (maps: BroadcastMaps<typeof broadcast>): Pick<Seen, 'applied' | 'rules'> => ({
          applied: maps.meta.get('applied') ?? 0,
          rules: JSON.stringify([...maps.rules]),
        });
        const lineStream = linesOf(flow, lines, 4);
        lineStream
          .keyBy((line) => line.key)
          .connectBroadcast(rulesStream, {
            uid: 'keyed',
            broadcast,
            state: { count: value(int64) },
            output: msgpack<Seen>(),
            onBroadcast(rule, maps) {
              if (rule.drop) maps.rules.delete(rule.name);
              else maps.rules.set(rule.name, rule.n);
              maps.meta.set('applied', (maps.meta.get('applied') ?? 0) + 1);
            },
            async onRecord(line, maps, ctx) {
              const before = show(maps);
              const count = ((await ctx.state.count.get()) ?? 0) + 1;
              ctx.state.count.set(count);
              await new Promise((resolve) => setImmediate(resolve));
              // One state of the maps, from the start of the handler to its end.
              expect(show(maps)).toEqual(before);
              ctx.emit({ key: line.key, n: line.n, count, ...before });
            },
          })
          .to(collect(out));
        lineStream
          .rebalance()
          .connectBroadcast(rulesStream, {
            uid: 'plain',
            broadcast,
            output: msgpack<Seen>(),
            onBroadcast(rule, maps) {
              if (rule.drop) maps.rules.delete(rule.name);
              else maps.rules.set(rule.name, rule.n);
              maps.meta.set('applied', (maps.meta.get('applied') ?? 0) + 1);
            },
            onRecord: (line, maps, ctx) => ctx.emit({ key: line.key, n: line.n, count: 1, ...show(maps) }),
          })
          .to(collect(plain));
      });
      const { checkpoint } = await randomRun(graph, [out, plain], random);
      // After so many rule records every subtask holds the same maps, which are those of a loop.
      const states = [new Map<string, number>()];
      for (const rule of rules) {
        const next = new Map(states.at(-1));
        if (rule.drop) next.delete(rule.name);
        else next.set(rule.name, rule.n);
        states.push(next);
      }
      for (const seen of [...out, ...plain]) {
        const held = JSON.parse(seen.rules) as [string, number][];
        expect(new Map(held)).toEqual(states[seen.applied]);
      }
      for (const list of [out, plain]) {
        expect(list.map((seen) => seen.n).toSorted((a, b) => a - b)).toEqual(lines.map((line) => line.n));
      }
      for (const own of byKey(out).values()) {
        expect(own.map((seen) => seen.count)).toEqual(own.map((_, i) => i + 1));
        expect(own.map((seen) => seen.applied)).toEqual(own.map((seen) => seen.applied).toSorted((a, b) => a - b));
      }
      for (const uid of ['keyed', 'plain']) {
        const parts = checkpoint.operators.filter((part) => part.operator === uid);
        expect(new Set(parts.map((part) => JSON.stringify(part.list))).size).toBe(1);
      }
    }));
});
