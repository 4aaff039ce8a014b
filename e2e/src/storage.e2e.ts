import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CliEnd, jsonLines, millrace } from './support/cli.ts';

const orders = 20_000;
let directory = '';
let data = '';

/** Runs the job `orders` to its end; the stack is gone when the tools look. */
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'millrace-storage-'));
  data = join(directory, 'data');
  const options = ['--option', `orders=${orders}`, '--checkpoint-interval', '500', '--output', join(directory, 'out')];
  const end = await millrace('run', 'orders', '--data', data, ...options);
  if (end.code !== 0) throw new Error(end.stderr);
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

async function tool(...args: readonly string[]): Promise<readonly Record<string, unknown>[]> {
  const end = await millrace(...args, '--json', '--data', data);
  if (end.code !== 0) throw new Error(end.stdout + end.stderr);
  return jsonLines(end.stdout);
}

function asked(...args: readonly string[]): Promise<CliEnd> {
  return millrace(...args, '--data', data);
}

test('`millrace state` lists a job, its checkpoints and states, and finds what a key has, without the job', async () => {
  expect(await tool('state', 'ls')).toEqual([expect.objectContaining({ id: 'orders', job: 'orders', finished: true })]);
  const lines = await tool('state', 'ls', 'orders');
  const operators = lines.filter((line) => line.event === 'operator');
  expect(lines.filter((line) => line.event === 'checkpoint').at(-1)).toMatchObject({ last: true });
  expect(operators).toMatchObject([{ operator: 'deliveries', store: 'lsm', subtasks: 2, keyFormat: 'key' }]);

  const scanned = await tool('state', 'scan', 'orders', 'deliveries', '--state', 'left', '--limit', '1000000');
  const keys = scanned.map((entry) => entry.key as number);
  expect(new Set(keys).size).toBe(keys.length);
  expect(scanned.filter(({ key, value }) => (value as { order: number }).order !== key)).toEqual([]);
  const some = keys[keys.length >> 1] as number;
  const got = await tool('state', 'get', 'orders', 'deliveries', String(some), '--state', 'left');
  expect(got).toEqual(scanned.filter((entry) => entry.key === some));
  const prefixed = await tool(
    'state',
    'scan',
    'orders',
    'deliveries',
    '--state',
    'left',
    '--prefix',
    '19',
    '--limit',
    '99999',
  );
  expect(prefixed.map((entry) => entry.key)).toEqual(keys.filter((key) => String(key).startsWith('19')));
  expect(await asked('state', 'get', 'orders', 'deliveries', 'nobody')).toMatchObject({ code: 2, stdout: '' });
});

test('`millrace fs` accounts for every byte, and verify finds one bit', async () => {
  const files = (await tool('fs', 'ls', 'orders')).filter((line) => line.event === 'file');
  const [usage] = await tool('fs', 'du', 'orders');
  const stored = readdirSync(join(data, 'state', 'orders', 'files'));
  expect(files.map(({ id }) => id)).toEqual(stored.sort());
  expect(usage?.physicalBytes).toBe(files.reduce((sum, { sizeBytes }) => sum + (sizeBytes as number), 0));
  const newest = await tool('state', 'files', 'orders');
  expect(newest.length).toBeGreaterThan(0);

  const [sound] = await tool('fs', 'verify', 'orders', '--deep');
  expect(sound).toMatchObject({ event: 'verified', problems: [] });
  const path = newest[0]?.path as string;
  const file = join(data, 'state', path);
  const bytes = readFileSync(file);
  bytes.writeUInt8(bytes.readUInt8(100) ^ 1, 100);
  writeFileSync(file, bytes);
  const damaged = await asked('fs', 'verify');
  expect(damaged.code).toBe(2);
  expect(damaged.stdout).toContain(`${path}: its checksum is`);
  expect(damaged.stdout).toContain('deliveries-');
});

test('what is not there is said in words', async () => {
  expect(await asked('state', 'ls', 'flights')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('there are orders'),
  });
  const nowhere = await millrace('fs', 'du', '--data', join(directory, 'nowhere'));
  expect(nowhere).toMatchObject({ code: 2, stderr: expect.stringContaining('There is no state at') });
});
