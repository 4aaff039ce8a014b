/* Asynchronous maps and lookup joins against plain loops: random delays and failures, crashes and restores at 1 → 3 → 2. */
import { SeededRandom } from '@millrace/kernel';
import { msgpack, string } from '@millrace/state';
import { describe, expect, it } from 'vitest';
import type { Flow } from '../api/flow.ts';
import { job } from '../api/job.ts';
import type { Stream } from '../api/stream.ts';
import { boundedOutOfOrderness } from '../api/watermarks.ts';
import { tumbling } from '../api/windows.ts';
import { buildGraph } from '../graph/build-graph.ts';
import { collect } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import { forSeeds, randomRun, randomSeeds } from '../testing/random-run.ts';

const seeds = randomSeeds(30);

interface Line {
  readonly n: number;
  readonly key: string;
}

function linesOf(flow: Flow, lines: readonly Line[], splits: number): Stream<Line> {
  return flow.from(generator({ record: (i) => lines[i] as Line, records: lines.length, splits }), {
    uid: 'lines',
    timestamp: (line) => line.n,
    watermarks: boundedOutOfOrderness(0, { interval: 0 }),
  });
}

function randomLines(random: SeededRandom): Line[] {
  const keys = 1 + random.below(6);
  return Array.from({ length: random.below(200) }, (_, n) => ({ n, key: `k${random.below(keys)}` }));
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Answers at once, or some turns of the event loop later; now and then the first try fails. */
function service<T>(random: SeededRandom, answer: T, attempt: number): T | Promise<T> {
  const wait = random.below(6);
  if (wait === 0) return answer;
  if (wait === 1 && attempt === 1) throw new Error('not yet');
  return turns(wait).then(() => {
    if (wait === 2 && attempt === 1) throw new Error('not yet');
    return answer;
  });
}

const retry = { attempts: 3, backoff: 1, backoffMax: 1 };

describe(`random records (${seeds.length} cases each)`, () => {
  it('mapAsync gives each record its result once; ordered, in the order of the records; in bounds, before the watermark', () =>
    forSeeds(seeds, async (seed) => {
      const random = new SeededRandom(seed);
      const lines = randomLines(random);
      const splits = 1 + random.below(3);
      const order = random.below(2) === 0 ? 'ordered' : 'unordered';
      const concurrency = 1 + random.below(20);
      let open = 0;
      let openMax = 0;
      const out: number[] = [];
      const counted: number[] = [];
      const graph = buildGraph(
        job('test', (flow) => {
          const mapped = linesOf(flow, lines, splits).mapAsync(
            async (line, ctx) => {
              openMax = Math.max(openMax, ++open);
              try {
                return await service(random, line.n, ctx.attempt);
              } finally {
                open--;
              }
            },
            { uid: 'map', order, concurrency, retry },
          );
          mapped.to(collect(out));
          // A result behind its watermark would be late here, and missing.
          mapped
            .keyBy(() => 'all')
            .window(tumbling(10), { uid: 'windows' })
            .process({ output: msgpack<number>(), process: (records, ctx) => ctx.emit(records.length) })
            .to(collect(counted));
        }),
      );
      await randomRun(graph, [out, counted], random);
      expect(out.toSorted((a, b) => a - b)).toEqual(lines.map((line) => line.n));
      expect(counted.reduce((sum, count) => sum + count, 0)).toBe(lines.length);
      // Three subtasks at most, and calls of a run that was killed may still be open beside those of the next.
      expect(openMax).toBeLessThanOrEqual(concurrency * 6);
      // Runs of 64 are dealt to the splits, and each split is read in order by one subtask at a time.
      const bySplit = Map.groupBy(order === 'ordered' ? out : [], (n) => Math.floor(n / 64) % splits);
      for (const own of bySplit.values()) expect(own).toEqual(own.toSorted((a, b) => a - b));
    }));

  it('lookupJoin pairs each record with what is found, without a key and by key, and by key in order', () =>
    forSeeds(seeds, async (seed) => {
      const random = new SeededRandom(seed);
      const lines = randomLines(random);
      const kind = random.below(2) === 0 ? 'inner' : 'left';
      const cached = random.below(2) === 0;
      const known = new Map(Array.from({ length: 3 }, (_, i) => [`k${i * 2}`, `name ${i}`]));
      const calls = new Map<string, number>();
      const [plain, keyed]: [string[], string[]] = [[], []];
      const graph = buildGraph(
        job('test', (flow) => {
          const all = linesOf(flow, lines, 1);
          all
            .lookupJoin({
              uid: 'plain',
              kind,
              retry,
              concurrency: 5,
              lookup: (line, ctx) => service(random, known.get(line.key), ctx.attempt),
              output: string,
              pair: (line, name) => `${line.n} ${name}`,
            })
            .to(collect(plain));
          all
            .keyBy((line) => line.key)
            .lookupJoin({
              uid: 'keyed',
              kind,
              retry,
              concurrency: 5,
              ...(cached ? { cache: { codec: string, ttl: { hours: 1 } } } : {}),
              lookup: (key, ctx) => {
                if (ctx.attempt === 1) calls.set(key, (calls.get(key) ?? 0) + 1);
                return service(random, known.get(key), ctx.attempt);
              },
              output: string,
              pair: (line, name) => `${line.n} ${name}`,
            })
            .to(collect(keyed));
        }),
      );
      await randomRun(graph, [plain, keyed], random);
      const expected = lines
        .filter((line) => kind === 'left' || known.has(line.key))
        .map((line) => `${line.n} ${known.get(line.key)}`);
      expect(plain.toSorted()).toEqual(expected.toSorted());
      expect(keyed.toSorted()).toEqual(expected.toSorted());
      for (const own of Map.groupBy(keyed, (row) => (lines[Number.parseInt(row, 10)] as Line).key).values()) {
        const order = own.map((row) => Number.parseInt(row, 10));
        expect(order).toEqual(order.toSorted((a, b) => a - b));
      }
      // Once, and once more for each of two crashes that lost what had been kept.
      expect(Math.max(0, ...(cached ? calls.values() : []))).toBeLessThanOrEqual(3);
    }));
});
