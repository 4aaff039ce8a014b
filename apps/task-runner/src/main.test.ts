import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';

const directory = mkdtempSync(join(tmpdir(), 'millrace-main-'));
let child: ChildProcess | undefined;
afterEach(() => {
  child?.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
});

/** The first line of the process and, after `signal`, its exit code and how long that took. */
async function run(
  args: readonly string[],
  signal?: NodeJS.Signals,
): Promise<{ line: unknown; code: number | null; ms: number }> {
  const main = join(import.meta.dirname, 'main.ts');
  const env = { ...process.env, MILLRACE_STATE: directory, MILLRACE_TEMPORAL_ADDRESS: '127.0.0.1:1' };
  const made = spawn(process.execPath, [main, ...args], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  child = made;
  const exited = new Promise<number | null>((resolve) => made.once('exit', resolve));
  const line = await new Promise<unknown>((resolve) => {
    let text = '';
    made.stdout.on('data', (bytes: Buffer) => {
      text += bytes.toString();
      if (text.includes('\n')) resolve(JSON.parse(text.slice(0, text.indexOf('\n'))));
    });
  });
  const startMs = performance.now();
  if (signal !== undefined) made.kill(signal);
  return { line, code: await exited, ms: performance.now() - startMs };
}

describe('the task-runner process', { timeout: 90_000 }, () => {
  it('says when it is ready, also while Temporal is away, and leaves with exit code 0 on SIGTERM', async () => {
    const { line, code, ms } = await run(['--runner-id', 'r1', '--slots', '3'], 'SIGTERM');
    expect(line).toMatchObject({ ready: 'task-runner', runnerId: 'r1', slots: 3 });
    expect((line as { address: string }).address).toMatch(/^127\.0\.0\.1:[1-9]\d*$/);
    expect(code).toBe(0);
    expect(ms).toBeLessThan(5500);
  });

  it('says what is wrong with a setting, and exits with 1', async () => {
    const { line, code } = await run(['--slots', '0']);
    expect(line).toMatchObject({ error: { code: 'bad-setting', details: { setting: 'slots' } } });
    expect(code).toBe(1);
  });

  it('does not start with a disk cache that cannot store anything', async () => {
    const { line, code } = await run(['--disk-cache', join(import.meta.filename, 'cache')]);
    expect(line).toMatchObject({ error: { code: 'bad-setting', details: { setting: 'diskCache' } } });
    expect(code).toBe(1);
  });
});
