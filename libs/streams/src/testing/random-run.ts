import type { SeededRandom } from '@millrace/kernel';
import { MemoryStateStore, type StateStore } from '@millrace/state';
import type { JobGraph } from '../graph/job-graph.ts';
import { SlowStore } from './slow-store.ts';
import { type TestCheckpoint, TestRun } from './test-run.ts';
import { turnClock } from './turn-clock.ts';

/** `MILLRACE_CASES` raises the count, `MILLRACE_SEED` replays one case. */
export function randomSeeds(casesDefault: number): readonly number[] {
  const only = process.env.MILLRACE_SEED;
  if (only !== undefined) return [Number(only)];
  return Array.from({ length: Number(process.env.MILLRACE_CASES ?? casesDefault) }, (_, i) => i + 1);
}

/** Runs a case for each seed; a failure names its seed. */
export async function forSeeds(seeds: readonly number[], run: (seed: number) => Promise<void>): Promise<void> {
  for (const seed of seeds) {
    try {
      await run(seed);
    } catch (error) {
      throw new Error(`MILLRACE_SEED=${seed}: ${error instanceof Error ? error.message : String(error)}`, {
        cause: error,
      });
    }
  }
}

export interface RandomRunEnd {
  readonly store: StateStore;
  readonly checkpoint: TestCheckpoint;
}

/**
 * Runs a job to its end with polls, in-flight limits and latencies of state at random, through crashes and restores at
 * the parallelisms 1, 3 and 2. What `outputs` had got after a checkpoint that a restore goes back to is cut off again, as
 * a transactional sink would.
 */
export async function randomRun(
  graph: JobGraph,
  outputs: readonly unknown[][],
  random: SeededRandom,
): Promise<RandomRunEnd> {
  const memory = new MemoryStateStore();
  const store = random.below(4) === 0 ? new SlowStore(memory, turnClock, random, 3) : memory;
  const limits = [1, 2, 7, 100, 6000];
  const start = async (parallelism: number, generation: number, restore?: TestCheckpoint): Promise<TestRun> => {
    const run = await TestRun.start(graph, {
      store,
      parallelism,
      generation,
      inFlightLimit: limits[random.below(limits.length)] as number,
      workingSetBytes: random.below(2) === 0 ? 1 : 1 << 18,
      ...(restore === undefined ? {} : { restore }),
    });
    // Sources without splits end here, so that watermarks depend on those alone that have records.
    await run.step(1, 0);
    return run;
  };
  let run = await start(1, 1);
  for (const [i, parallelism] of [3, 2].entries()) {
    await run.step(1 + random.below(4), 1 + random.below(40));
    const checkpoint = await run.checkpoint();
    const kept = outputs.map((output) => output.length);
    await run.step(random.below(3), 1 + random.below(40));
    await run.close();
    for (const [o, output] of outputs.entries()) output.length = kept[o] as number;
    run = await start(parallelism, i + 2, checkpoint);
  }
  await run.toEnd(1 + random.below(60));
  return { store, checkpoint: await run.finish() };
}
