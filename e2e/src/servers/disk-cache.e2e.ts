import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { metricOf } from '../support/metrics.ts';
import { eventually, TestStack } from '../support/test-stack.ts';
import { versitygwMissing } from '../support/versitygw/binary.ts';
import { S3Server } from '../support/versitygw/s3-server.ts';
import { expectExactCounts } from '../support/wordcount-result.ts';

const missing = versitygwMissing();
const mib = 1024 * 1024;
const keys = 30_000;
const payloadBytes = 2000;
const records = 70_000;

const directory = mkdtempSync(join(tmpdir(), 'millrace-disk-cache-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** What the slots of the runner ask of the disk cache, and the runner itself of S3. */
async function figuresOf(run: TestStack) {
  const names = ['hits', 'misses', 'hit_bytes', 'bytes', 'files', 'reloads', 'evictions', 'failures'] as const;
  const values = await Promise.all(names.map((name) => metricOf(run, 'task-runner-1', `millrace_disk_cache_${name}`)));
  return Object.fromEntries(names.map((name, i) => [name, values[i] as number])) as Record<
    (typeof names)[number],
    number
  >;
}

test.skipIf(missing !== undefined)(
  `on S3, state larger than the memory for it is read from the local disk, also after kill -9 of the runner${missing === undefined ? '' : `: skipped, ${missing}`}`,
  async () => {
    await using server = await S3Server.start();
    const cacheBytesMax = 512 * mib;
    await using run = await TestStack.start({
      runners: 1,
      slots: 1,
      env: {
        ...S3Server.env,
        MILLRACE_STATE: server.uri('disk-cache'),
        MILLRACE_METRICS_PORT: '0',
        MILLRACE_SLOT_MEMORY: '128m',
        MILLRACE_DISK_CACHE: directory,
        MILLRACE_DISK_CACHE_BYTES: String(cacheBytesMax),
        MILLRACE_DISK_CACHE_RESERVE: '0',
      },
    });
    const job = await run.client.startJob({
      job: 'wordcount',
      checkpointIntervalMs: 4000,
      options: {
        keys,
        payloadBytes,
        records,
        fill: true,
        readBoth: true,
        recordsPerSecond: 5000,
        output: run.path('out'),
      },
    });
    const before = await eventually('reads answered by the disk', 120_000, async () => {
      const figures = await figuresOf(run);
      return figures.hits > 50 ? figures : undefined;
    });
    run.kill('task-runner-1');
    const after = await eventually('reads answered by the disk after the restart', 180_000, async () => {
      const figures = await figuresOf(run);
      return figures.hits > 100 ? figures : undefined;
    });
    const end = await job.result();
    const last = await figuresOf(run);
    console.log({ before, after, last });
    expect(end.state).toBe('finished');
    expectExactCounts(run.path('out'), records, keys);
    // What was written by either life is read from the disk; nothing had to be read again.
    for (const { hits, misses } of [before, after, last]) expect(hits / (hits + misses)).toBeGreaterThan(0.9);
    expect(last.failures).toBe(0);
    expect(last.bytes).toBeLessThanOrEqual(cacheBytesMax);
  },
);
