/**
 * Random programs (keys, latencies, watermarks, timers, spawned work, barriers, failures; limits 1 to 6000) on the real
 * controller, in an order of completions that the seed decides, held against SPEC.md and against a reference that runs one
 * record at a time. `MILLRACE_SEED=n` replays one, `MILLRACE_CASES=n` runs so many; `npm run soak -- aec` runs long.
 */
import { SeededRandom } from '@millrace/kernel';
import { expect, it } from 'vitest';
import { type Program, type ProgramOptions, randomLimit, randomProgram } from './simulation/program.ts';
import { referenceOf } from './simulation/reference.ts';
import { type Checkpoint, emptyStart, type Outcome, runProgram } from './simulation/run.ts';

const count = Number(process.env.MILLRACE_CASES ?? 250);
const replay = process.env.MILLRACE_SEED;
const seeds = replay === undefined ? Array.from({ length: count }, (_, seed) => seed) : [Number(replay)];
const timeoutMs = 60_000 + count * 50;

async function forSeeds(work: (random: SeededRandom) => Promise<readonly string[]>): Promise<void> {
  for (const seed of seeds) {
    const faults = await work(new SeededRandom(seed)).catch((error: unknown) => {
      throw new Error(`MILLRACE_SEED=${seed}`, { cause: error });
    });
    expect(faults, `MILLRACE_SEED=${seed}`).toEqual([]);
  }
}

/** How many of the programs failed, as planned in them. */
async function hold(options: ProgramOptions): Promise<number> {
  let failed = 0;
  await forSeeds(async (random) => {
    const outcome = await runProgram(randomProgram(random, options), random);
    if (outcome.failed) failed++;
    return outcome.faults;
  });
  return failed;
}

it('gives each key what a sequential run gives it', { timeout: timeoutMs }, async () => {
  expect(await hold({ derived: false, failures: false })).toBe(0);
});

it('keeps watermarks behind records, timers and all that they spawn', { timeout: timeoutMs }, async () => {
  expect(await hold({ derived: true, failures: false })).toBe(0);
});

it('stops at a random failure', { timeout: timeoutMs }, async () => {
  expect(await hold({ derived: true, failures: true })).toBeGreaterThanOrEqual(replay === undefined ? count / 4 : 0);
});

/** Attempts, each from the last barrier of the one before and at a limit of its own, until one reaches the end. */
async function toTheEnd(program: Program, random: SeededRandom): Promise<Outcome & { readonly attempts: number }> {
  const spent = new Set<number>();
  const faults: string[] = [];
  let from: Checkpoint = emptyStart;
  for (let attempts = 1; ; attempts++) {
    const failsAfterTurns = attempts === 1 ? program.failsAfterTurns : -1;
    const attempt = { ...program, inFlightLimit: randomLimit(random), failsAfterTurns };
    const outcome = await runProgram(attempt, random, { from, spent });
    faults.push(...outcome.faults);
    from = outcome.checkpoint;
    if (!outcome.failed) return { ...outcome, faults, attempts };
  }
}

/** What lies between one watermark and the next, in no order: keys overlap. */
function segmentsOf(output: Checkpoint['output']): number[][] {
  const segments: number[][] = [[]];
  for (const item of output) {
    if (item === '|') segments.push([]);
    else segments.at(-1)?.push(item);
  }
  return segments.map((segment) => segment.toSorted((a, b) => a - b));
}

function inMode(watermarks: Program['watermarks'], segments: readonly number[][]): readonly number[][] {
  return watermarks === 'serial' ? segments : [segments.flat().toSorted((a, b) => a - b)];
}

it('equals one record at a time, through failures, restores from barriers and other limits', {
  timeout: timeoutMs,
}, async () => {
  let restores = 0;
  await forSeeds(async (random) => {
    const program = randomProgram(random, { derived: true, failures: true, exact: true });
    const { faults, attempts, checkpoint } = await toTheEnd(program, random);
    restores += attempts - 1;
    const { applied, segments } = referenceOf(program);
    expect(checkpoint.store).toEqual(applied);
    const emitted = segmentsOf(checkpoint.output);
    const expected = segments.map((segment) => segment.toSorted((a, b) => a - b));
    // In parallel mode what follows a watermark may come before it: the observer sees to what may not.
    const { watermarks } = program;
    expect(inMode(watermarks, emitted)).toEqual(inMode(watermarks, expected));
    return faults;
  });
  expect(restores).toBeGreaterThanOrEqual(replay === undefined ? count / 4 : 0);
});
