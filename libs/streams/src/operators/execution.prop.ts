/**
 * The same keyed job under random executions (synchronous, asynchronous, limits 1 to 6000, serial and parallel watermarks),
 * with a restore into another one and another parallelism after every few records, over state that is at hand or far away.
 * `MILLRACE_CASES` raises the count, `MILLRACE_SEED` replays one case.
 */
import { SeededRandom, systemClock } from '@millrace/kernel';
import { int64, list, MemoryStateStore, map, msgpack, reducing, value } from '@millrace/state';
import { expect, it } from 'vitest';
import type { Execution } from '../api/execution.ts';
import { job } from '../api/job.ts';
import { monotonous } from '../api/watermarks.ts';
import { buildGraph } from '../graph/build-graph.ts';
import type { JobGraph } from '../graph/job-graph.ts';
import { collect } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import { forSeeds, randomSeeds } from '../testing/random-run.ts';
import { SlowStore } from '../testing/slow-store.ts';
import { type TestCheckpoint, TestRun } from '../testing/test-run.ts';

interface Line {
  readonly key: number;
  readonly n: number;
  readonly timeMs: number;
}

/** What a key tells with each record: it depends on all before it, in their order. */
interface Told {
  readonly key: number;
  readonly n: number;
  readonly digest: number;
  readonly sum: number;
  readonly count: number;
  readonly all: readonly number[];
}

const modulus = 1_000_003;
const seeds = randomSeeds(30);

function graphOf(lines: readonly Line[], execution: Execution, out: (Told | string)[]): JobGraph {
  const source = generator({ record: (i) => lines[i] as Line, records: lines.length, splits: 1 });
  return buildGraph(
    job('modes', (flow) => {
      flow
        .from(source, { uid: 'lines', timestamp: (line) => line.timeMs, watermarks: monotonous({ interval: 0 }) })
        .keyBy((line) => line.key)
        .process({
          uid: 'telling',
          execution,
          state: {
            digest: value(int64),
            sum: reducing(int64, (a: number, b: number) => a + b),
            all: list(int64),
            counts: map(int64, int64),
          },
          output: msgpack<Told | string>(),
          async onRecord({ key, n, timeMs }, ctx) {
            const { state } = ctx;
            const [digest, count] = await Promise.all([state.digest.get(), state.counts.get(n % 2)]);
            state.digest.set(((digest ?? 7) * 31 + n) % modulus);
            await state.sum.add(n);
            await state.all.add(n);
            state.counts.set(n % 2, (count ?? 0) + 1);
            ctx.timers.at(timeMs + 10);
            ctx.spawn(async (own) => {
              const sum = (await own.state.sum.get()) ?? 0;
              const all = await own.state.all.get();
              own.emit({ key, n, digest: (await own.state.digest.get()) ?? 0, sum, count: (count ?? 0) + 1, all });
            });
          },
          async onTimer(timeMs, ctx) {
            await ctx.state.digest.get();
            ctx.emit(`${ctx.key}@${timeMs}`);
          },
        })
        .to(collect(out));
    }),
  );
}

function reference(lines: readonly Line[]): (Told | string)[] {
  const byKey = new Map<number, Told[]>();
  const timers = new Set<string>();
  for (const { key, n, timeMs } of lines) {
    const told = byKey.get(key) ?? [];
    const before = told.at(-1);
    const all = [...(before?.all ?? []), n];
    told.push({
      key,
      n,
      digest: ((before?.digest ?? 7) * 31 + n) % modulus,
      sum: (before?.sum ?? 0) + n,
      count: all.filter((other) => other % 2 === n % 2).length,
      all,
    });
    byKey.set(key, told);
    timers.add(`${key}@${timeMs + 10}`);
  }
  return [...[...byKey.values()].flat(), ...timers];
}

function randomExecution(random: SeededRandom): Execution {
  if (random.below(3) === 0) return 'synchronous';
  const inFlightLimit = [1, 2, 7, 100, 6000][random.below(5)] as number;
  return { inFlightLimit, watermarks: random.below(2) === 0 ? 'serial' : 'parallel' };
}

async function throughModes(
  lines: readonly Line[],
  executions: readonly Execution[],
  random: SeededRandom,
): Promise<(Told | string)[]> {
  const out: (Told | string)[] = [];
  const memory = new MemoryStateStore();
  const store = random.below(3) === 0 ? new SlowStore(memory, systemClock, random, 1) : memory;
  let restore: TestCheckpoint | undefined;
  for (const [i, execution] of executions.entries()) {
    const run = await TestRun.start(graphOf(lines, execution, out), {
      store,
      generation: i + 1,
      parallelism: 1 + random.below(3),
      workingSetBytes: random.below(2) === 0 ? 1 : 1 << 18,
      ...(restore === undefined ? {} : { restore }),
    });
    if (i === executions.length - 1) {
      await run.finish();
      return out;
    }
    await run.step(1 + random.below(3), 1 + random.below(20));
    restore = await run.checkpoint();
    const kept = out.length;
    await run.step(1, random.below(20));
    await run.close();
    out.length = kept;
  }
  return out;
}

function randomLines(random: SeededRandom): Line[] {
  const keys = 1 + random.below(8);
  return Array.from({ length: random.below(120) }, (_, n) => ({ key: random.below(keys), n, timeMs: n }));
}

const text = (item: Told | string): string => (typeof item === 'string' ? item : JSON.stringify(item));
const sorted = (items: readonly (Told | string)[]): string[] => items.map(text).toSorted();

it('state written asynchronously restores into synchronous mode, and the other way round', async () => {
  const random = new SeededRandom(1);
  const lines = randomLines(new SeededRandom(42));
  for (const executions of [
    [{ inFlightLimit: 100 }, 'synchronous', { inFlightLimit: 6000 }],
    ['synchronous', { watermarks: 'parallel' }, 'synchronous'],
  ] as const) {
    expect(sorted(await throughModes(lines, executions, random))).toEqual(sorted(reference(lines)));
  }
});

it('a job equals one record at a time, whichever executions it goes through', {
  timeout: 30_000 + seeds.length * 1000,
}, async () => {
  await forSeeds(seeds, async (seed) => {
    const random = new SeededRandom(seed);
    const lines = randomLines(random);
    const executions = Array.from({ length: 1 + random.below(4) }, () => randomExecution(random));
    const out = await throughModes(lines, executions, random);
    expect(sorted(out)).toEqual(sorted(reference(lines)));
    for (let key = 0; key < 8; key++) {
      const mine = out.filter((item) => typeof item !== 'string' && item.key === key) as Told[];
      expect(mine.map(({ n }) => n)).toEqual(mine.map(({ n }) => n).toSorted((a, b) => a - b));
    }
  });
});
