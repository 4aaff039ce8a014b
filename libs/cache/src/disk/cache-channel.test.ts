import { promises as fs } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { systemClock as clock, systemRandom as random } from '@millrace/kernel';
import { MetricsRegistry, noTelemetry } from '@millrace/telemetry';
import { expect, test } from 'vitest';
import { cacheChannel } from './cache-channel.ts';
import { openDiskCache } from './open-disk-cache.ts';

test('threads share the cache of their process: each writes and reads copies, one keeps the books', {
  retry: 2,
}, async () => {
  const directory = await fs.mkdtemp(join(tmpdir(), 'millrace-cache-'));
  const metrics = new MetricsRegistry();
  const cache = await openDiskCache(
    { directory, bytesMax: 64 << 20, reserveBytes: 0, policy: 'history' },
    {
      fetch: () => Promise.reject(new Error('nothing is remote')),
      clock,
      random,
      telemetry: { ...noTelemetry, metrics },
    },
  );
  const answers = await Promise.all(
    [1, 2, 3].map((seed) => {
      const worker = new Worker(new URL('./testing/cache-thread.fixture.ts', import.meta.url), {
        workerData: { place: cache.place, seed },
      });
      return new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
    }),
  );
  expect(answers.flat()).toEqual(Array(30).fill({ right: true, cached: true }));
  const value = (name: string): number | undefined =>
    metrics.collect().find((family) => family.name === name)?.samples[0]?.value;
  await expect.poll(() => value('millrace_disk_cache_hits')).toBe(30);
  expect(value('millrace_disk_cache_files')).toBe(3);
  expect(value('millrace_disk_cache_misses')).toBe(0);
  await cache.close();
  await fs.rm(directory, { recursive: true });
});

test('a cache that does not answer costs a copy, not the file', async () => {
  const link = cacheChannel('nobody-listens', {
    clock: { ...clock, schedule: (_, call) => clock.schedule(1, call) },
    random,
  });
  expect(await link.request({ ticket: 't', bytes: 1 })).toBe(false);
  link.close();
  link.notify({ kind: 'forgotten', names: [] });
});
