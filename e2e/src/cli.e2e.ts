import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CliEnd, type CliProcess, jsonLines, millrace, npxMillrace, startMillrace } from './support/cli.ts';
import { expectExactFlights } from './support/flights-result.ts';
import { eventually } from './support/test-stack.ts';

let directory = '';
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'millrace-cli-'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const anyPorts = ['--temporal-port', '0', '--ui-port', '0', '--console-port', '0'];

test('`npx millrace run flights --output DIR` brings everything up, publishes both reports, exits 0 and leaves nothing', async () => {
  const output = join(directory, 'run-out');
  const data = join(directory, 'run');
  const end = await npxMillrace('run', 'flights', '--output', output, '--option', 'rows=30000', '--data', data);
  expect(end.stderr).toBe('');
  expect(end.code).toBe(0);
  expect(end.stdout).toContain(`Output: ${output}`);
  await expectExactFlights(output, 30_000);
  expect(existsSync(join(data, 'stack.json'))).toBe(false);
});

test('`millrace dev --job flights`, stopped by Ctrl-C, leaves nothing behind and resumes at the next start', async () => {
  const rows = 40_000;
  const output = join(directory, 'dev-out');
  const data = join(directory, 'dev');
  const options = ['--option', `rows=${rows}`, '--option', 'recordsPerSecond=4000', '--output', output];
  const args = ['dev', '--job', 'flights', '--no-keep', '--json', '--checkpoint-interval', '500', '--data', data];
  const first = startMillrace(...args, ...anyPorts, ...options);
  const { pids, temporalAddress } = (await stackOf(first)) as { pids: Record<string, number>; temporalAddress: string };
  const before = await statusWhen(data, 'flights', (status) => checkpointOf(status) >= 3);
  expect(before).toMatchObject({ state: 'running', generation: 1, plan: { restoreFrom: null } });
  first.kill('SIGINT');
  expect(await first.ended).toMatchObject({ code: 0 });
  expect(Object.values(pids).filter(isAlive)).toEqual([]);
  await expectFree(Number(temporalAddress.split(':')[1]));

  const second = startMillrace(...args, ...anyPorts, ...options);
  const after = await statusWhen(data, 'flights', (status) => status.state === 'running' && status.live !== null);
  expect(after.generation).toBeGreaterThan(1);
  expect((after.plan as { restoreFrom: string }).restoreFrom).toContain('/checkpoints/');
  const end = await second.ended;
  expect(end.code).toBe(0);
  expect(jsonLines(end.stdout).at(-1)).toMatchObject({ event: 'finished', id: 'flights', output });
  const read = second.events('progress').map((event) => Number(event.records));
  expect(Math.max(0, ...read)).toBeLessThan(rows);
  await expectExactFlights(output, rows);
});

describe('on a running stack', () => {
  let stack: CliProcess;
  let data = '';
  beforeAll(async () => {
    data = join(directory, 'stack');
    stack = startMillrace('dev', '--json', '--slots', '1', '--data', data, ...anyPorts);
    await stackOf(stack);
  });
  afterAll(async () => {
    stack.kill('SIGTERM');
    const { code, stderr } = await stack.ended;
    if (code !== 0) throw new Error(`the stack ended with ${code}: ${stderr}`);
  });

  test('a job can be run, listed, looked at, checkpointed and cancelled', async () => {
    const options = ['--option', 'records=0', '--option', 'recordsPerSecond=2000', '--checkpoint-interval', '60000'];
    const running = startMillrace('run', 'wordcount', '--json', '--data', data, ...options);
    await statusWhen(data, 'wordcount', (status) => status.state === 'running');
    const jobs = await millrace('jobs', '--json', '--data', data);
    expect(jsonLines(jobs.stdout)).toEqual([expect.objectContaining({ id: 'wordcount', state: 'running' })]);
    const checkpoint = await millrace('checkpoint', 'wordcount', '--json', '--data', data);
    expect(jsonLines(checkpoint.stdout)).toEqual([expect.objectContaining({ checkpoint: 1, last: false })]);
    const status = await millrace('status', 'wordcount', '--data', data);
    expect(status).toMatchObject({ code: 0, stdout: expect.stringMatching(/wordcount-checkpoint-1\b/) });
    const cancel = await millrace('cancel', 'wordcount', '--json', '--data', data);
    expect(jsonLines(cancel.stdout)).toEqual([{ id: 'wordcount', state: 'cancelled' }]);
    const end = await running.ended;
    expect(end.code).toBe(1);
    expect(jsonLines(end.stdout).at(-1)).toMatchObject({ error: { code: 'cancelled' } });
  });

  test.each([
    { what: 'a job that no runner knows', args: ['run', 'nosuch'], words: /nosuch.*flights/s },
    {
      what: 'an option that the job does not have',
      args: ['run', 'flights', '--option', 'colour="red"'],
      words: /colour/,
    },
    { what: 'an option of the wrong type', args: ['run', 'flights', '--option', 'rows=many'], words: /rows/ },
    { what: 'a job that was never started', args: ['status', 'never'], words: /never/ },
    { what: 'another stack on the directory', args: ['dev', ...anyPorts], words: /--data/ },
  ])('refuses $what with exit code 2, in words', async ({ args, words }) => {
    await expectRefusal([...args, '--data', data], words);
  });
});

describe('refused before anything starts, with exit code 2 and the name of the setting', () => {
  test.each(['--temporal-port', '--ui-port', '--console-port'])('a port that is taken: %s', async (flag) => {
    const server = createServer();
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address() as { port: number };
    const others = anyPorts.filter((_, i) => anyPorts[i - (i % 2)] !== flag);
    const data = join(directory, `taken${flag}`);
    await expectRefusal(['dev', '--data', data, ...others, flag, String(port)], new RegExp(`${port}.*${flag}`));
    await new Promise((done) => server.close(done));
  });

  test('a data directory that cannot be written to', async () => {
    const file = join(directory, 'file');
    writeFileSync(file, '');
    await expectRefusal(['dev', '--data', join(file, 'data'), ...anyPorts], /--data.*file\/data/);
  });

  test.each([
    { args: ['run', 'flights', '--parallelism', '0'], words: /--parallelism 0/ },
    { args: ['run', 'flights', '--option', 'rows'], words: /--option rows/ },
    { args: ['status', 'flights'], words: /--data.*MILLRACE_TEMPORAL_ADDRESS/s },
  ])('$args', async ({ args, words }) => {
    await expectRefusal([...args, '--data', join(directory, 'none')], words);
  });

  test('a flag that does not exist', async () => {
    const end = await millrace('run', 'flights', '--colour');
    expect(end).toMatchObject({ code: 2, stderr: expect.stringContaining('--colour') });
  });
});

/** Twice: in words for people, and as one JSON object for scripts. */
async function expectRefusal(args: readonly string[], words: RegExp): Promise<void> {
  const plain = await millrace(...args);
  expect(plain.stderr).toMatch(words);
  expect(plain.code).toBe(2);
  expect(plain.stderr).not.toMatch(/\n\s+at /);
  const json: CliEnd = await millrace(...args, '--json');
  expect(json.code).toBe(2);
  expect(jsonLines(json.stdout).at(-1)).toMatchObject({ error: { message: expect.stringMatching(words) } });
}

async function stackOf(cli: CliProcess): Promise<Record<string, unknown>> {
  return await eventually('the stack is up', 60_000, () => {
    if (!cli.running) throw new Error('millrace dev ended');
    return cli.events('stack')[0];
  });
}

/** Asks `millrace status` until it says so. */
async function statusWhen(
  data: string,
  id: string,
  holds: (status: Record<string, unknown>) => boolean,
): Promise<Record<string, unknown>> {
  return await eventually(`job ${id} is as expected`, 60_000, async () => {
    const { code, stdout } = await millrace('status', id, '--json', '--data', data);
    const status = code === 0 ? jsonLines(stdout)[0] : undefined;
    return status !== undefined && holds(status) ? status : undefined;
  });
}

function checkpointOf(status: Record<string, unknown>): number {
  return (status.lastCheckpoint as { checkpoint: number } | null)?.checkpoint ?? 0;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function expectFree(port: number): Promise<void> {
  const server = createServer();
  await new Promise<void>((done, reject) => server.once('error', reject).listen(port, '127.0.0.1', done));
  await new Promise((done) => server.close(done));
}
