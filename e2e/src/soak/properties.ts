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

/** Runs property tests with so many seeds each. Fails when one fails; its output has the seed. */
export async function soakProperties(files: readonly string[], cases: number): Promise<void> {
  const vitest = join(createRequire(import.meta.url).resolve('vitest/package.json'), '..', 'vitest.mjs');
  const child = spawn(process.execPath, [vitest, 'run', '--testTimeout', '0', ...files], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, MILLRACE_CASES: String(cases) },
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  });
  if (code !== 0) throw new Error(`a property does not hold (vitest exited with ${code})`);
}
