import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** Controller against one record at a time; the same through a whole keyed operator and its state. */
export const aecProperties: readonly string[] = [
  'libs/aec/src/aec.prop.ts',
  'libs/streams/src/operators/execution.prop.ts',
];

/** A job's files, record and forks against a model that sees every request; crashes between any two durable steps. */
export const ufsProperties: readonly string[] = [
  'libs/ufs/src/job-storage.prop.ts',
  'libs/ufs/src/record/fenced-object.prop.ts',
];

/** A bank on the real store: stalled writers, sweeps without grace, chains of forks. */
export const simulations: readonly string[] = ['stalled-writer', 'gc-boundary', 'clone-chain'].map(
  (name) => `e2e/src/sim/${name}.sim.ts`,
);

/** The same bank with one fault, at every request in turn. */
export const faultSimulations: readonly string[] = ['e2e/src/sim/faults.sim.ts'];

/** Runs property tests with so many seeds each. Fails when one fails; its output has the seed. */
export async function soakProperties(files: readonly string[], cases: number): Promise<void> {
  const vitest = join(createRequire(import.meta.url).resolve('vitest/package.json'), '..', 'vitest.mjs');
  const child = spawn(process.execPath, [vitest, 'run', '--testTimeout', '0', ...files], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, MILLRACE_CASES: String(cases), MILLRACE_SEEDS: String(cases) },
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  });
  if (code !== 0) throw new Error(`a property does not hold (vitest exited with ${code})`);
}
