import { mkdtempSync, readdirSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDiskCache, openDiskFiles, type RunningDiskCache } from '@millrace/cache';
import { MemoryDfs } from '@millrace/dfs';
import { FaultyDfs } from '@millrace/dfs/testing';
import { systemClock as clock, systemRandom as random, sleep } from '@millrace/kernel';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type JobStorage, openJobStorage } from './job-storage.ts';

const latencyMs = 23;
const content = Uint8Array.from({ length: 300_000 }, (_, i) => (i * 7) ^ (i >> 8));

let directory: string;
let running: RunningDiskCache;
let dfs: FaultyDfs;
const close: Array<() => unknown> = [];

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'millrace-ufs-'));
  dfs = new FaultyDfs(new MemoryDfs(clock), {
    delay: (_, timing) => (timing === 'before' ? sleep(clock, latencyMs) : undefined),
  });
  const fetch = (path: string, offset: number, length: number): Promise<Uint8Array> => dfs.read(path, offset, length);
  running = await openDiskCache(
    { directory, bytesMax: 64 << 20, reserveBytes: 0, policy: 'lru' },
    { fetch, clock, random, telemetry },
  );
});

afterEach(async () => {
  for (const each of close.splice(0).toReversed()) await each();
  await running.close();
  rmSync(directory, { recursive: true, force: true });
});

/** The job's files as one more thread of the runner sees them. */
function openStorage(): JobStorage {
  const cache = openDiskFiles(running.place, { clock, random });
  const storage = openJobStorage({ dfs, jobId: 'job', generation: 1, clock, random, telemetry, cache });
  close.push(
    () => cache.close(),
    () => storage.close(),
  );
  return storage;
}

async function write({ files }: JobStorage) {
  const writer = await files.create();
  for (let at = 0; at < content.length; at += 70_000) await writer.append(content.subarray(at, at + 70_000));
  return await writer.seal();
}

test('a file that one thread made another reads from the disk, without a request and while the file system is away', async () => {
  const file = await write(openStorage());
  const reader = openStorage().files.open(file);
  const requests = dfs.calls;
  dfs.failWhen(() => true, 'before');
  for (let offset = 0; offset < content.length; offset += 50_000) {
    expect(await reader.read(offset, 1000)).toEqual(content.slice(offset, offset + 1000));
  }
  expect(await reader.read(content.length - 10, 500)).toEqual(content.slice(-10));
  expect(dfs.calls).toBe(requests);
});

test('when its copy is cut off or gone, the same reader goes on at the file itself', async () => {
  const storage = openStorage();
  const file = await write(storage);
  const reader = storage.files.open(file);
  expect(await reader.read(0, 1000)).toEqual(content.slice(0, 1000));
  const files = join(running.place.path, 'files');
  const [name] = readdirSync(files);
  truncateSync(join(files, name as string), 100_000);
  expect(await reader.read(150_000, 1000)).toEqual(content.slice(150_000, 151_000));
  expect(await reader.read(200_000, 1000)).toEqual(content.slice(200_000, 201_000));
});

test('a file that is discarded leaves the disk, too, and one that is given up was never there', async () => {
  const storage = openStorage();
  const file = await write(storage);
  const given = await storage.files.create();
  await given.append(content);
  await given.abort();
  storage.files.discard([file]);
  const files = join(running.place.path, 'files');
  await expect.poll(() => readdirSync(files)).toEqual([]);
});
