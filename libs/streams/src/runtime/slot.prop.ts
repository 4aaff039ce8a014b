import { SeededRandom } from '@millrace/kernel';
import { MemoryStateStore } from '@millrace/state';
import { describe, expect, it } from 'vitest';
import type { JobGraph, Partitioning } from '../graph/job-graph.ts';
import { byKey, type EdgeSpec, testGraph } from '../testing/fixture-graph.ts';
import {
  type Event,
  FivesAside,
  KeyedSum,
  Published,
  PublishingSink,
  type Split,
  SplitSource,
  type SumResult,
} from '../testing/fixture-operators.ts';
import { type ClusterCheckpoint, LocalCluster } from '../testing/local-cluster.ts';
import { inFlightBytes } from './in-flight.ts';
import type { Operator } from './operator.ts';

/** `MILLRACE_CASES` raises the count, `MILLRACE_SEED` replays one case. */
const runs = Number(process.env.MILLRACE_CASES ?? 120);
const only = process.env.MILLRACE_SEED;
const seeds = only === undefined ? Array.from({ length: runs }, (_, i) => i + 1) : [Number(only)];

const keys = 7;

interface Outputs {
  readonly sums: Published;
  /** Of the side output. */
  readonly fives: Published;
}

interface Case {
  readonly splits: readonly Split[];
  /** Those that pass the operator with the side output. */
  readonly passing: readonly Split[];
  readonly graph: (outputs: Outputs) => JobGraph;
  readonly parallelisms: readonly number[];
}

/** A source, sometimes a second one, some steps in between, the keyed sum, exactly-once sinks. */
function randomCase(random: SeededRandom): Case {
  const splits = Array.from({ length: 1 + random.below(4) }, (_, i) => ({
    name: `s${i}`,
    next: 0,
    end: random.below(200),
  }));
  // Nowhere; straight into the sum, as its second input; in a union before it.
  const second = [undefined, undefined, 'sum', 'pass'][random.below(4)];
  const slow = (): SeededRandom | undefined => (random.below(2) === 0 ? new SeededRandom(random.nextU32()) : undefined);
  const anyPartitioning = (): Partitioning => {
    const kind = (['forward', 'rebalance', 'custom'] as const)[random.below(3)] as 'forward' | 'rebalance' | 'custom';
    if (kind !== 'custom') return { kind };
    return { kind, choose: (value: { readonly key: number }, parallelism: number) => value.key % parallelism };
  };
  const [first, beforeSink, beforeSide] = [anyPartitioning(), anyPartitioning(), anyPartitioning()];
  const [seedSource, seedSum, seedSink, seedSide] = [slow(), slow(), slow(), slow()];
  const half = Math.ceil(splits.length / 2);
  const graph = ({ sums, fives }: Outputs): JobGraph => {
    const operators: Record<string, () => Operator> = {
      source: () => new SplitSource(second === undefined ? splits : splits.slice(0, half), keys, seedSource),
      pass: () => new FivesAside(),
      sum: () => new KeyedSum(seedSum, first.kind === 'forward'),
      sink: () => new PublishingSink(sums, seedSink),
      side: () => new PublishingSink(fives, seedSide),
    };
    const edges: EdgeSpec[] = [
      { from: 'source', to: 'pass', partitioning: first },
      { from: 'pass', to: 'sum', partitioning: byKey },
      { from: 'sum', to: 'sink', partitioning: beforeSink },
      { from: 'pass', to: 'side', partitioning: beforeSide, side: 'fives' },
    ];
    if (second !== undefined) {
      operators.second = () => new SplitSource(splits.slice(half), keys, seedSource);
      edges.push({ from: 'second', to: second, partitioning: second === 'sum' ? byKey : first });
    }
    return testGraph(operators, edges);
  };
  const parallelisms =
    random.below(2) === 0 ? [1, 3, 2] : Array.from({ length: 1 + random.below(4) }, () => 1 + random.below(3));
  return { splits, passing: second === 'sum' ? splits.slice(0, half) : splits, graph, parallelisms };
}

/** Aligned, unaligned, aligned with a time limit. */
function randomMode(random: SeededRandom): number | undefined {
  return [undefined, 0, 0, 1 + random.below(10)][random.below(4)];
}

/** Every event counts once for its key: counts 1 … n, each once, and the last sum is exact. */
function check({ splits, passing }: Case, { sums, fives }: Outputs): void {
  const aside = (fives.values as Event[]).map(({ split, n }) => `${split} ${n}`).toSorted();
  const all = passing.flatMap(({ name, end }) => Array.from({ length: end }, (_, n) => ({ name, n })));
  expect(aside).toEqual(
    all
      .filter(({ n }) => n % 5 === 0)
      .map(({ name, n }) => `${name} ${n}`)
      .toSorted(),
  );
  const expected = new Map<number, { count: number; sum: number }>();
  for (const split of splits) {
    for (let n = 0; n < split.end; n++) {
      const state = expected.get(n % keys) ?? { count: 0, sum: 0 };
      expected.set(n % keys, { count: state.count + 1, sum: state.sum + n });
    }
  }
  const got = new Map<number, SumResult[]>();
  for (const result of sums.values as SumResult[]) got.set(result.key, [...(got.get(result.key) ?? []), result]);
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
async function runCase(random: SeededRandom, { graph, parallelisms }: Case, outputs: Outputs): Promise<number> {
  let replayedBytes = 0;
  let from: ClusterCheckpoint | undefined;
  for (const [i, parallelism] of parallelisms.entries()) {
    const cluster = await LocalCluster.start({
      graph: () => graph(outputs),
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
      return replayedBytes;
    }
    let last = from;
    for (let rounds = random.below(4); rounds > 0 && !last?.ended; rounds--) {
      await turns(random, 30);
      if (random.below(5) === 0) {
        // A round that some slots never hear of, given up.
        const number = (last?.checkpoint ?? 0) + 1000 + rounds;
        const overtakeAfterMs = randomMode(random);
        cluster.slots[0]?.checkpoint({ checkpoint: number, overtakeAfterMs }).catch(() => undefined);
        await turns(random, 10);
        cluster.abort(number);
        last = undefined;
        break;
      }
      last = await cluster.checkpoint(randomMode(random));
      // A registered checkpoint counts, whether or not the slots hear of it.
      from = last;
      if (random.below(3) > 0 && !last.ended) await cluster.complete(last);
    }
    await turns(random, 10);
    await cluster.kill();
    await cluster.done.catch(() => undefined);
    for (const { inFlight } of from?.operators ?? []) replayedBytes += inFlightBytes(inFlight);
  }
  return replayedBytes;
}

describe('a job that is killed and restored at other parallelisms', () => {
  it(`publishes every result exactly once (${seeds.length} random cases)`, async () => {
    let checked = 0;
    let replayedBytes = 0;
    for (const seed of seeds) {
      const random = new SeededRandom(seed);
      const one = randomCase(random);
      const outputs = { sums: new Published(), fives: new Published() };
      try {
        replayedBytes += await runCase(random, one, outputs);
        check(one, outputs);
        checked++;
      } catch (error) {
        throw new Error(`MILLRACE_SEED=${seed}`, { cause: error });
      }
    }
    expect(checked).toBe(seeds.length);
    // One case alone may have had nothing in flight.
    expect(replayedBytes).toBeGreaterThan(only === undefined ? 0 : -1);
  }, 60_000);
});
