import { SeededRandom } from '@millrace/kernel';
import { MemoryStateStore } from '@millrace/state';
import { describe, expect, it } from 'vitest';
import type { JobGraph, Partitioning } from '../graph/job-graph.ts';
import { byKey, type EdgeSpec, testGraph } from '../testing/fixture-graph.ts';
import {
  KeyedSum,
  PassOperator,
  Published,
  PublishingSink,
  type Split,
  SplitSource,
  type SumResult,
} from '../testing/fixture-operators.ts';
import { type ClusterCheckpoint, LocalCluster } from '../testing/local-cluster.ts';
import type { Operator } from './operator.ts';

/** `MILLRACE_CASES` raises the count, `MILLRACE_SEED` replays one case. */
const runs = Number(process.env.MILLRACE_CASES ?? 120);
const only = process.env.MILLRACE_SEED;
const seeds = only === undefined ? Array.from({ length: runs }, (_, i) => i + 1) : [Number(only)];

const keys = 7;

interface Case {
  readonly splits: readonly Split[];
  readonly graph: (published: Published) => JobGraph;
  readonly parallelisms: readonly number[];
}

/** A source, sometimes a second one, some steps in between, the keyed sum, an exactly-once sink. */
function randomCase(random: SeededRandom): Case {
  const splits = Array.from({ length: 1 + random.below(4) }, (_, i) => ({
    name: `s${i}`,
    next: 0,
    end: random.below(200),
  }));
  const twoSources = random.below(3) === 0;
  const slow = (): SeededRandom | undefined => (random.below(2) === 0 ? new SeededRandom(random.nextU32()) : undefined);
  const anyPartitioning = (): Partitioning => ({ kind: random.below(2) === 0 ? 'forward' : 'rebalance' });
  const [first, beforeSink] = [anyPartitioning(), anyPartitioning()];
  const [seedSource, seedSum, seedSink] = [slow(), slow(), slow()];
  const graph = (published: Published): JobGraph => {
    const half = Math.ceil(splits.length / 2);
    const operators: Record<string, () => Operator> = {
      source: () => new SplitSource(twoSources ? splits.slice(0, half) : splits, keys, seedSource),
      pass: () => new PassOperator(),
      sum: () => new KeyedSum(seedSum),
      sink: () => new PublishingSink(published, seedSink),
    };
    const edges: EdgeSpec[] = [
      { from: 'source', to: 'pass', partitioning: first },
      { from: 'pass', to: 'sum', partitioning: byKey },
      { from: 'sum', to: 'sink', partitioning: beforeSink },
    ];
    if (twoSources) {
      operators.second = () => new SplitSource(splits.slice(half), keys, seedSource);
      edges.push({ from: 'second', to: 'sum', partitioning: byKey });
    }
    return testGraph(operators, edges);
  };
  const parallelisms =
    random.below(2) === 0 ? [1, 3, 2] : Array.from({ length: 1 + random.below(4) }, () => 1 + random.below(3));
  return { splits, graph, parallelisms };
}

/** Every event counts once for its key: counts 1 … n, each once, and the last sum is exact. */
function check(splits: readonly Split[], published: Published): void {
  const expected = new Map<number, { count: number; sum: number }>();
  for (const split of splits) {
    for (let n = 0; n < split.end; n++) {
      const state = expected.get(n % keys) ?? { count: 0, sum: 0 };
      expected.set(n % keys, { count: state.count + 1, sum: state.sum + n });
    }
  }
  const got = new Map<number, SumResult[]>();
  for (const result of published.values as SumResult[]) got.set(result.key, [...(got.get(result.key) ?? []), result]);
  expect(new Set(got.keys())).toEqual(new Set(expected.keys()));
  for (const [key, { count, sum }] of expected) {
    const results = (got.get(key) ?? []).toSorted((a, b) => a.count - b.count);
    expect(results.map((one) => one.count)).toEqual(Array.from({ length: count }, (_, i) => i + 1));
    expect(results.at(-1)?.sum).toBe(sum);
  }
}

async function turns(random: SeededRandom, max: number): Promise<void> {
  for (let i = random.below(max); i > 0; i--) await new Promise((resolve) => setImmediate(resolve));
}

/** Runs the job through its parallelisms, killing it in between at any moment, and lets the last attempt end. */
async function runCase(random: SeededRandom, { graph, parallelisms }: Case, published: Published): Promise<void> {
  let from: ClusterCheckpoint | undefined;
  for (const [i, parallelism] of parallelisms.entries()) {
    const cluster = await LocalCluster.start({
      graph: () => graph(published),
      store: new MemoryStateStore(),
      parallelism,
      maxParallelism: 16,
      generation: i + 1,
      from,
      random,
      slowNetwork: random.below(2) === 0,
      settings: { frameBytes: 1 + random.below(200), channelWindowBytes: 64 + random.below(2000), frameDelayMs: 1 },
    });
    if (i === parallelisms.length - 1) {
      await cluster.finish();
      return;
    }
    let last = from;
    for (let rounds = random.below(4); rounds > 0 && !last?.ended; rounds--) {
      await turns(random, 30);
      if (random.below(5) === 0) {
        // A round that some slots never hear of, given up.
        const number = (last?.checkpoint ?? 0) + 1000 + rounds;
        cluster.slots[0]?.checkpoint({ checkpoint: number }).catch(() => undefined);
        await turns(random, 10);
        cluster.abort(number);
        last = undefined;
        break;
      }
      last = await cluster.checkpoint();
      // A registered checkpoint counts, whether or not the slots hear of it.
      from = last;
      if (random.below(3) > 0 && !last.ended) await cluster.complete(last);
    }
    await turns(random, 10);
    await cluster.kill();
    await cluster.done.catch(() => undefined);
  }
}

describe('a job that is killed and restored at other parallelisms', () => {
  it(`publishes every result exactly once (${seeds.length} random cases)`, async () => {
    let checked = 0;
    for (const seed of seeds) {
      const random = new SeededRandom(seed);
      const one = randomCase(random);
      const published = new Published();
      try {
        await runCase(random, one, published);
        check(one.splits, published);
        checked++;
      } catch (error) {
        throw new Error(`MILLRACE_SEED=${seed}`, { cause: error });
      }
    }
    expect(checked).toBe(seeds.length);
  }, 60_000);
});
