/**
 * Seeds of a property test: `MILLRACE_SEED` replays one, `MILLRACE_SEEDS` says how many to run (the soak takes 10,000).
 */
export function seeds(usual: number): number[] {
  const one = process.env.MILLRACE_SEED;
  if (one !== undefined) return [Number(one)];
  return Array.from({ length: Number(process.env.MILLRACE_SEEDS ?? usual) }, (_, i) => i + 1);
}

/** Runs `work` for one seed; a failure names the seed and how to replay it. */
export async function withSeed<T>(seed: number, work: (seed: number) => Promise<T>): Promise<T> {
  try {
    return await work(seed);
  } catch (error) {
    throw new Error(`seed ${seed} (replay with MILLRACE_SEED=${seed}): ${String(error)}`, { cause: error });
  }
}

/** Time limit of a test over `count` seeds: far above what they need. */
export function seedsTimeoutMs(count: number): number {
  return 30_000 + seeds(count).length * 200;
}
