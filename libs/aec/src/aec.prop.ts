/**
 * Random programs (keys, asynchrony, watermarks, timers, spawned work, drains, failures) on the real controller, in an
 * order of completions that the seed decides, held against SPEC.md. `MILLRACE_SEED=n` replays one, `MILLRACE_SEEDS=n`
 * runs so many.
 */
import { SeededRandom } from '@millrace/kernel';
import { expect, it } from 'vitest';
import { type ProgramOptions, randomProgram } from './simulation/program.ts';
import { runProgram } from './simulation/run.ts';

const count = Number(process.env.MILLRACE_SEEDS ?? 250);
const replay = process.env.MILLRACE_SEED;
const seeds = replay === undefined ? Array.from({ length: count }, (_, seed) => seed) : [Number(replay)];

/** How many of the programs failed, as planned in them. */
async function hold(options: ProgramOptions): Promise<number> {
  let failed = 0;
  for (const seed of seeds) {
    const random = new SeededRandom(seed);
    const program = randomProgram(random, options);
    const outcome = await runProgram(program, random).catch((error: unknown) => {
      throw new Error(`MILLRACE_SEED=${seed}`, { cause: error });
    });
    expect(outcome.faults, `MILLRACE_SEED=${seed}`).toEqual([]);
    if (outcome.failed) failed++;
  }
  return failed;
}

const timeoutMs = 30_000 + count * 50;

it('gives each key what a sequential run gives it', { timeout: timeoutMs }, async () => {
  expect(await hold({ derived: false, failures: false })).toBe(0);
});

it('keeps watermarks behind records, timers and all that they spawn', { timeout: timeoutMs }, async () => {
  expect(await hold({ derived: true, failures: false })).toBe(0);
});

it('stops at a random failure', { timeout: timeoutMs }, async () => {
  expect(await hold({ derived: true, failures: true })).toBeGreaterThanOrEqual(replay === undefined ? count / 4 : 0);
});
