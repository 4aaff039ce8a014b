import { promises as fs } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SeededRandom } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import { noTelemetry } from '@millrace/telemetry';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HistoryPolicy } from '../policies/history-policy.ts';
import { LruPolicy } from '../policies/lru-policy.ts';
import type { CacheDisk } from './cache-disk.ts';
import type { CachedFile } from './cached-file.ts';
import { copyBytes } from './copy-format.ts';
import { directLink } from './direct-link.ts';
import { DiskCache, type DiskCacheOptions } from './disk-cache.ts';
import { DiskFiles } from './disk-files.ts';
import { LocalDisk } from './local-disk.ts';
import { FakeDisk } from './testing/fake-disk.ts';
import { RemoteFiles } from './testing/remote-files.ts';

const kib = 1024;
const fileBytes = 100 * kib;

let directory: string;
let clock: ManualClock;
let remote: RemoteFiles;
const random = new SeededRandom(1);
const open: DiskCache[] = [];

beforeEach(async () => {
  directory = await fs.mkdtemp(join(tmpdir(), 'millrace-cache-'));
  clock = new ManualClock(1_700_000_000_000);
  remote = new RemoteFiles();
});

afterEach(async () => {
  for (const cache of open.splice(0)) await cache.close();
  await fs.rm(directory, { recursive: true, force: true });
});

async function start(options: Partial<DiskCacheOptions> = {}, disk: CacheDisk = new LocalDisk(directory)) {
  if (disk instanceof LocalDisk) await disk.prepare();
  const cache = await DiskCache.open({
    disk,
    bytesMax: 10 * copyBytes(fileBytes) + 2 * 1024 * kib,
    reserveBytes: 0,
    policy: new LruPolicy(),
    fetch: remote.fetch,
    clock,
    random,
    log: noTelemetry.log,
    ...options,
  });
  open.push(cache);
  const files = new DiskFiles({ disk, link: directLink(cache), clock, random });
  const read = (file: CachedFile): Promise<{ right: boolean; cached: boolean }> => remote.read(files, file, random);
  return { cache, files, disk, read };
}

/** Waits until loads and removals that are under way have come to this; without a condition, for a while. */
async function settle(until?: () => boolean): Promise<void> {
  const turnsMax = until === undefined ? 50 : 5000;
  for (let i = 0; i < turnsMax && until?.() !== true; i++) await new Promise((resolve) => setTimeout(resolve, 2));
}

const cachedRight = { right: true, cached: true };
const remoteRight = { right: true, cached: false };
const onDisk = async (): Promise<string[]> => (await fs.readdir(join(directory, 'files'))).toSorted();

describe('the disk cache', () => {
  it('answers reads of a file that was written through, without a request', async () => {
    const { cache, files, read } = await start();
    const file = await remote.write(files, fileBytes, 30_000);
    expect(await Promise.all(Array.from({ length: 20 }, () => read(file)))).toEqual(Array(20).fill(cachedRight));
    expect(remote.reads).toBe(0);
    expect(cache.bytes).toBe(copyBytes(fileBytes));
    clock.advance(200);
    expect(cache.stats).toMatchObject({ hits: 20, misses: 0, written: 1 });
  });

  it('does not show a copy before its file is sealed, and leaves nothing of one that is given up', async () => {
    const { cache, files } = await start();
    const through = files.create();
    await through.append(new Uint8Array(fileBytes));
    expect(await onDisk()).toEqual([]);
    expect(cache.bytes).toBeGreaterThan(fileBytes);
    await through.abort();
    expect(await fs.readdir(join(directory, 'tmp'))).toEqual([]);
    expect(cache.bytes).toBe(0);
  });

  it('has after a crash what it had, and forgets half-written copies', async () => {
    const first = await start();
    const file = await remote.write(first.files, fileBytes, 30_000);
    await first.files.create().append(new Uint8Array(1000));
    const second = await start();
    expect(await second.read(file)).toEqual(cachedRight);
    expect(second.cache).toMatchObject({ bytes: copyBytes(fileBytes), files: 1 });
    expect(await fs.readdir(join(directory, 'tmp'))).toEqual([]);
  });

  it('started again with a lower limit keeps what was used last', async () => {
    const first = await start();
    const written: CachedFile[] = [];
    for (let i = 0; i < 5; i++) {
      const file = await remote.write(first.files, fileBytes, fileBytes);
      written.push(file);
      await fs.utimes(
        join(directory, 'files', (await onDisk()).find((name) => name.startsWith(file.id)) as string),
        i,
        i,
      );
    }
    await first.cache.close();
    const second = await start({ bytesMax: 3 * copyBytes(fileBytes) });
    expect(second.cache.files).toBe(3);
    const cached = await Promise.all(written.map(async (file) => (await second.read(file)).cached));
    expect(cached).toEqual([false, false, true, true, true]);
  });

  it('lets a reader of an evicted file go on at the same offset remotely, and has its bytes back at once', async () => {
    const { cache, files } = await start({ bytesMax: 2 * copyBytes(fileBytes) + 1024 * kib });
    const file = await remote.write(files, fileBytes, fileBytes);
    const reader = files.open(file);
    expect(await reader.read(5000, 100)).toHaveLength(100);
    const handle = await fs.open(join(directory, 'files', (await onDisk())[0] as string));
    while (cache.stats.evictions === 0) await remote.write(files, fileBytes, fileBytes);
    expect((await handle.stat()).size).toBe(0);
    await handle.close();
    expect(await reader.read(5100, 100)).toBeUndefined();
  });

  it.each([
    ['a flipped bit', (bytes: Buffer) => bytes.fill((bytes[70_000] as number) ^ 4, 70_000, 70_001)],
    ['a page of zeros', (bytes: Buffer) => bytes.fill(0, 65_536, 69_632)],
  ])('never gives wrong bytes: %s is noticed at the read, which goes to the remote file', async (_, damage) => {
    const { cache, files } = await start();
    const file = await remote.write(files, fileBytes, fileBytes);
    const path = join(directory, 'files', (await onDisk())[0] as string);
    await fs.writeFile(path, damage(await fs.readFile(path)));
    expect(await files.open(file).read(0, 100)).toHaveLength(100);
    expect(await files.open(file).read(69_000, 2000)).toBeUndefined();
    await settle(() => cache.bytes === 0);
    expect(cache.stats.failures.damaged).toBe(1);
    expect(await onDisk()).toEqual([]);
    expect(cache.bytes).toBe(0);
  });

  it('drops a copy that is cut off when it is opened, and one that somebody removed when it is missed', async () => {
    const { cache, files, read } = await start();
    const [cut, removed] = [
      await remote.write(files, fileBytes, fileBytes),
      await remote.write(files, fileBytes, fileBytes),
    ];
    const [first, second] = (await onDisk()).map((name) => join(directory, 'files', name)) as [string, string];
    await fs.truncate(first, 50_000);
    await fs.unlink(second);
    expect(await Promise.all([read(cut), read(removed)])).toEqual([remoteRight, remoteRight]);
    clock.advance(200);
    await settle(() => cache.bytes === 0);
    expect(cache.stats.failures).toMatchObject({ damaged: 1, lost: 1 });
  });

  it('goes on without writing while the disk is full, and counts it', async () => {
    const disk = new FakeDisk({ capacity: 1 << 30, bytesMax: 1 << 30, reserveBytes: 0, random });
    const { cache, files, read } = await start({}, disk);
    disk.fullShare = 1;
    const file = await remote.write(files, fileBytes, fileBytes);
    expect(await read(file)).toEqual(remoteRight);
    expect(cache.stats.failures).toMatchObject({ write: 1, full: 1 });
    expect(cache.bytes).toBe(0);
    disk.fullShare = 0;
    await remote.write(files, fileBytes, fileBytes);
    expect(cache.stats).toMatchObject({ refused: 1, written: 0 });
    clock.advance(30_000);
    await remote.write(files, fileBytes, fileBytes);
    expect(cache.stats.written).toBe(1);
  });

  it('gives way when others fill the disk', async () => {
    const disk = new FakeDisk({ capacity: 4 * 1024 * kib, bytesMax: 1 << 30, reserveBytes: 1024 * kib, random });
    const { cache, files } = await start({ reserveBytes: 1024 * kib }, disk);
    for (let i = 0; i < 5; i++) await remote.write(files, fileBytes, fileBytes);
    expect(cache.files).toBe(5);
    disk.othersBytes = 2.7 * 1024 * kib;
    clock.advance(1000);
    await settle(() => disk.free >= 1024 * kib);
    expect(disk.free).toBeGreaterThanOrEqual(1024 * kib);
    expect(cache.files).toBeLessThan(5);
    expect(cache.files).toBeGreaterThan(0);
  });

  it('refills: files that are read often come back after their copies were lost', async () => {
    const { cache, read } = await start({ policy: new HistoryPolicy() });
    const [hot, cold] = [remote.add(fileBytes), remote.add(fileBytes)];
    for (let i = 0; i < 40; i++) await read(hot);
    await read(cold);
    clock.advance(1000);
    await settle(() => cache.stats.loads > 0);
    expect(cache.stats).toMatchObject({ loads: 1, loadedBytes: fileBytes });
    expect([await read(hot), await read(cold)]).toEqual([cachedRight, remoteRight]);
  });

  it('loads nothing that is not what it should be', async () => {
    const { cache, read } = await start();
    const file = remote.add(fileBytes);
    const wrong = { ...file, crc32: file.crc32 ^ 1 };
    await read(wrong);
    clock.advance(200);
    await settle(() => cache.stats.failures.load > 0);
    expect(cache.stats).toMatchObject({ loads: 0, failures: { load: 1 } });
    expect(cache.bytes).toBe(0);
    expect(await fs.readdir(join(directory, 'tmp'))).toEqual([]);
  });

  it('does not load what only a compaction reads', async () => {
    const { cache, disk } = await start();
    const scans = new DiskFiles({ disk, link: directLink(cache), clock, random, scans: true });
    await remote.read(scans, remote.add(fileBytes), random);
    clock.advance(2000);
    await settle();
    expect(cache.stats).toMatchObject({ loads: 0, misses: 1 });
  });

  it('has the space of a writer that died back when its lease is over', async () => {
    const { cache, files } = await start();
    await files.create().append(new Uint8Array(fileBytes));
    expect(cache.bytes).toBeGreaterThan(fileBytes);
    clock.advance(61_000);
    await settle(() => cache.bytes === 0);
    expect(cache.bytes).toBe(0);
    expect(await fs.readdir(join(directory, 'tmp'))).toEqual([]);
  });

  it('forgets a file that was discarded', async () => {
    const { cache, files } = await start();
    const file = await remote.write(files, fileBytes, fileBytes);
    files.forget([file]);
    await settle(() => cache.bytes === 0);
    expect([cache.bytes, await onDisk()]).toEqual([0, []]);
  });

  it('writes and removes nothing more when another process has taken its directory', async () => {
    const { cache, files } = await start({ stillOwned: () => Promise.resolve(false) });
    await remote.write(files, fileBytes, fileBytes);
    clock.advance(1000);
    await settle();
    await remote.write(files, fileBytes, fileBytes);
    expect(cache.stats).toMatchObject({ written: 1, refused: 1 });
    expect(await onDisk()).toHaveLength(1);
  });
});
