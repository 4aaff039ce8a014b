import { SeededRandom } from '@millrace/kernel';

/**
 * Runs `check` with many seeds. The failing seed is in the error; `MILLRACE_SEED` replays one, `MILLRACE_CASES`
 * multiplies the number of cases.
 */
export async function forSeeds(cases: number, check: (random: SeededRandom) => void | Promise<void>): Promise<void> {
  const replay = process.env['MILLRACE_SEED'];
  const count = replay === undefined ? cases * Number(process.env['MILLRACE_CASES'] ?? 1) : 1;
  for (let i = 0; i < count; i++) {
    const seed = replay === undefined ? i + 1 : Number(replay);
    try {
      await check(new SeededRandom(seed));
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`seed ${seed} (replay with MILLRACE_SEED=${seed}): ${message}`, { cause });
    }
  }
}
