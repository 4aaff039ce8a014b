import { type SeededRandom, sleep, systemClock } from '@millrace/kernel';
import { MemoryStateStore, type StateStore } from '@millrace/state';
import { buildGraph } from '../graph/build-graph.ts';
import { inFlightBytes } from '../runtime/in-flight.ts';
import { type ClusterCheckpoint, LocalCluster } from '../testing/local-cluster.ts';
import { SlowStore } from '../testing/slow-store.ts';
import { turnClock } from '../testing/turn-clock.ts';
import { pick } from './key.ts';
import type { Plan } from './plan.ts';
import { Publications } from './transaction-sink.ts';

export interface RunOptions {
  /** The state of an attempt; default: in memory. */
  readonly storeOf?: (generation: number) => Promise<StateStore>;
  /** Told what happens. */
  readonly log?: (words: string) => void;
}

export interface RunEnd {
  readonly publications: ReadonlyMap<string, Publications>;
  /** How many slots each attempt had. */
  readonly parallelisms: readonly number[];
  /** Bytes that barriers overtook and a restore replayed. */
  readonly replayedBytes: number;
}

/** Nothing moves for so long: it hangs. */
const idleMsMax = 20_000;
const limits = [1, 2, 7, 100, 6000];

/** Runs the job through crashes and restores at other parallelisms, in modes, limits and latencies at random, to its end. */
export async function runPlan(plan: Plan, random: SeededRandom, options: RunOptions = {}): Promise<RunEnd> {
  const publications = new Map(plan.ends.map(({ name }) => [name, new Publications()]));
  const parallelisms = parallelismsOf(plan, random);
  const memory = new MemoryStateStore();
  const log = options.log ?? ((): void => undefined);
  const storeOf = options.storeOf ?? (async () => memory);
  let from: ClusterCheckpoint | undefined;
  let replayedBytes = 0;
  for (const [i, parallelism] of parallelisms.entries()) {
    const store = await storeOf(i + 1);
    const latency = random.below(2) * (1 + random.below(4));
    const settings = {
      inFlightLimit: pick(random, limits),
      workingSetBytes: pick(random, [1, 2000, 1 << 20]),
      frameBytes: 1 + random.below(400),
      channelWindowBytes: pick(random, [64, 200, 1000, 4000]),
      frameDelayMs: random.below(2),
    };
    const slowNetwork = random.below(2) === 0;
    log(
      `attempt ${i + 1}: ${JSON.stringify({ parallelism, from: from?.checkpoint, latency, slowNetwork, ...settings })}`,
    );
    const cluster = await LocalCluster.start({
      graph: () => buildGraph(plan.job(publications)),
      store: latency === 0 ? store : new SlowStore(store, turnClock, random, latency),
      job: 'random',
      parallelism,
      maxParallelism: 16,
      generation: i + 1,
      from,
      random,
      slowNetwork,
      settings,
    });
    if (i === parallelisms.length - 1) {
      await within(cluster.finish(), { cluster, idleMsMax });
      return { publications, parallelisms, replayedBytes };
    }
    from = await crash(cluster, from, { random, log });
    for (const { inFlight } of from?.operators ?? []) replayedBytes += inFlightBytes(inFlight);
  }
  return { publications, parallelisms, replayedBytes };
}

function parallelismsOf(plan: Plan, random: SeededRandom): readonly number[] {
  const attempts = 1 + random.below(4);
  if (plan.single) return Array.from({ length: attempts }, () => 1);
  return random.below(2) === 0 ? [1, 3, 2] : Array.from({ length: attempts }, () => 1 + random.below(3));
}

/** Some rounds, of which each is registered; then the end without warning. */
async function crash(
  cluster: LocalCluster,
  from: ClusterCheckpoint | undefined,
  { random, log }: { readonly random: SeededRandom; readonly log: (words: string) => void },
): Promise<ClusterCheckpoint | undefined> {
  let last = from;
  for (let rounds = random.below(4); rounds > 0 && last?.ended !== true; rounds--) {
    await turns(random, 25);
    // Aligned, unaligned, aligned with a time limit.
    const overtakeAfterMs = pick(random, [undefined, 0, 0, random.below(10)]);
    const round = cluster.checkpoint(overtakeAfterMs);
    last = await within(round, { cluster, idleMsMax });
    const overtaken = last.operators.reduce((sum, { inFlight }) => sum + inFlightBytes(inFlight), 0);
    log(`checkpoint ${last.checkpoint}, to overtake after ${overtakeAfterMs} ms: ${overtaken} bytes overtaken`);
    // A registered checkpoint counts, whether or not the slots hear of it.
    if (random.below(3) > 0 && !last.ended) await cluster.complete(last);
  }
  await turns(random, 15);
  await cluster.kill();
  await cluster.done.catch(() => undefined);
  return last;
}

async function turns(random: SeededRandom, max: number): Promise<void> {
  for (let i = random.below(max); i > 0; i--) await new Promise((resolve) => setImmediate(resolve));
}

/** The work's result; rejects when nothing has moved in the cluster for too long. */
async function within<T>(
  work: Promise<T>,
  { cluster, idleMsMax }: { cluster: LocalCluster; idleMsMax: number },
): Promise<T> {
  const over = new AbortController();
  try {
    return await Promise.race([work, hang(cluster, idleMsMax, over.signal)]);
  } finally {
    over.abort();
  }
}

/** Rejects when nothing moves; never resolves. */
async function hang(cluster: LocalCluster, idleMsMax: number, over: AbortSignal): Promise<never> {
  for (
    let [before, now] = ['', progressOf(cluster)];
    before !== now || over.aborted;
    [before, now] = [now, progressOf(cluster)]
  ) {
    await sleep(systemClock, idleMsMax, over).catch(() => new Promise<never>(() => undefined));
  }
  throw new Error(`hangs: ${progressOf(cluster)}`);
}

function progressOf(cluster: LocalCluster): string {
  const operators = cluster.stats().flatMap((slot) => slot.operators ?? []);
  return operators
    .map((o) => `${o.uid} ${o.recordsIn} ${o.recordsOut} ${o.inFlight} ${o.buffered} ${o.watermarkMs}`)
    .join(', ');
}
