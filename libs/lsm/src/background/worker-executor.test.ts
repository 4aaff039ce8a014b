import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BlockCache } from '@millrace/cache';
import { systemClock } from '@millrace/kernel';
import { noTelemetry } from '@millrace/telemetry';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { filesOf } from '../manifest/manifest.ts';
import { LsmTable } from '../table/lsm-table.ts';
import { DiskFileStore } from '../testing/disk-files.ts';
import { get, put, tinyLimits } from '../testing/driver.ts';
import { WorkerExecutor } from './worker-executor.ts';

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'lsm-'));
});

afterEach(() => rmSync(directory, { recursive: true }));

function executorOf(specifier: string): WorkerExecutor {
  return new WorkerExecutor({ files: { specifier, config: directory }, clock: systemClock, closeTimeoutMs: 5000 });
}

const diskFiles = new URL('../testing/disk-files.ts', import.meta.url).href;

test('flushes and compactions run on another thread, and after close neither thread nor stray file is left', async () => {
  const executor = executorOf(diskFiles);
  const table = new LsmTable({
    files: new DiskFileStore(directory),
    executor,
    cache: new BlockCache({ bytesMax: 1 << 20 }),
    clock: systemClock,
    telemetry: noTelemetry,
    limits: tinyLimits,
  });
  for (let round = 0; round < 20; round++) {
    for (let i = 0; i < 200; i++) put(table, `key ${i}`, `value ${round} ${i} ${'x'.repeat(20)}`);
    await table.admit();
  }
  const { manifest } = await table.snapshot();
  for (let i = 0; i < 200; i++) expect(await get(table, `key ${i}`)).toBe(`value 19 ${i} ${'x'.repeat(20)}`);
  expect(table.stats().compaction.merges).toBeGreaterThan(0);
  for (let i = 0; i < 500; i++) put(table, `unsaved ${i}`, 'x'.repeat(100));
  await table.close();
  await executor.close();
  const named = filesOf(manifest).map((file) => file.id);
  expect(readdirSync(directory).toSorted()).toEqual(named.toSorted());
});

test('when the thread cannot start, a snapshot fails with the reason and the rest of the table goes on', async () => {
  const executor = executorOf(new URL('./no-such-module.ts', import.meta.url).href);
  const table = new LsmTable({
    files: new DiskFileStore(directory),
    executor,
    cache: new BlockCache({ bytesMax: 1 << 20 }),
    clock: systemClock,
    telemetry: noTelemetry,
    limits: tinyLimits,
  });
  put(table, 'key', 'value');
  await expect(table.snapshot()).rejects.toMatchObject({ code: 'lsm-worker-failed', kind: 'retry' });
  expect(await get(table, 'key')).toBe('value');
  await table.close();
  await executor.close();
});
