import { spawnSync } from 'node:child_process';
import { promises as fs } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock as clock } from '@millrace/kernel';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type CacheDirectory, takeCacheDirectory } from './cache-directory.ts';

let root: string;
const held: CacheDirectory[] = [];

beforeEach(async () => {
  root = await fs.mkdtemp(join(tmpdir(), 'millrace-cache-'));
});

afterEach(async () => {
  for (const directory of held.splice(0)) await directory.release();
  await fs.rm(root, { recursive: true, force: true });
});

async function take(nonce: string): Promise<CacheDirectory> {
  const directory = await takeCacheDirectory(root, { clock, nonce });
  held.push(directory);
  return directory;
}

/** Leaves a lock as a process that did not end cleanly would. */
async function leaveLock(owner: { host: string; pid: number; startedMs: number }, ageMs: number): Promise<void> {
  const lock = join(root, '0', 'lock');
  await fs.mkdir(join(root, '0'), { recursive: true });
  await fs.writeFile(lock, JSON.stringify({ ...owner, nonce: 'old' }));
  const at = (clock.nowMs() - ageMs) / 1000;
  await fs.utimes(lock, at, at);
}

test('runners on one machine each use a part of the directory, and one that starts again finds its own', async () => {
  const taken = await Promise.all(['a', 'b', 'c'].map(take));
  expect(new Set(taken.map(({ path }) => path)).size).toBe(3);
  expect(await Promise.all(taken.map((each) => each.stillOwned()))).toEqual([true, true, true]);
  const path = join(root, '1');
  await taken.find((each) => each.path === path)?.release();
  expect((await take('d')).path).toBe(path);
});

test('a process that was killed is replaced at once', async () => {
  const { pid } = spawnSync(process.execPath, ['-e', '']);
  await leaveLock({ host: hostname(), pid, startedMs: clock.nowMs() }, 0);
  expect((await take('a')).path).toBe(join(root, '0'));
});

test('so is an earlier life with the same process number, as in a container', async () => {
  await leaveLock({ host: hostname(), pid: process.pid, startedMs: clock.nowMs() - 3_600_000 }, 0);
  expect((await take('a')).path).toBe(join(root, '0'));
});

test('a process of another host keeps its part as long as it renews its lock', async () => {
  await leaveLock({ host: 'other', pid: 1, startedMs: 0 }, 30_000);
  expect((await take('a')).path).toBe(join(root, '1'));
  await leaveLock({ host: 'other', pid: 1, startedMs: 0 }, 120_000);
  expect((await take('b')).path).toBe(join(root, '0'));
});

test('who has lost its part notices', async () => {
  const lost = await take('a');
  await leaveLock({ host: 'other', pid: 1, startedMs: 0 }, 0);
  expect(await lost.stillOwned()).toBe(false);
});

test('a directory that cannot be used is refused by the name of its setting', async () => {
  await fs.writeFile(join(root, 'file'), '');
  await expect(takeCacheDirectory(join(root, 'file'), { clock, nonce: 'a' })).rejects.toMatchObject({
    code: 'bad-setting',
    details: { setting: 'diskCache' },
  });
});
