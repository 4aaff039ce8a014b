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
  const table = tableOn(executor);
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

function tableOn(executor: WorkerExecutor): LsmTable {
  return new LsmTable({
    files: new DiskFileStore(directory),
    executor,
    cache: new BlockCache({ bytesMax: 1 << 20 }),
    clock: systemClock,
    telemetry: noTelemetry,
    limits: tinyLimits,
  });
}

/** A module whose files do `create`. */
function filesThat(create: string): string {
  const files = `{ create: () => { ${create} }, open: () => undefined, discard: () => undefined }`;
  return `data:text/javascript,export const openBackgroundFiles = async () => ({ files: ${files}, close: async () => {} })`;
}

test('when the thread dies at work, what waits for it fails, and so does all that comes later', async () => {
  const executor = executorOf(
    filesThat("setImmediate(() => { throw new Error('out of luck') }); return new Promise(() => {})"),
  );
  const table = tableOn(executor);
  put(table, 'key', 'value');
  const failed = { code: 'lsm-worker-failed', message: expect.stringContaining('out of luck') };
  await expect(table.snapshot()).rejects.toMatchObject(failed);
  await expect(table.snapshot()).rejects.toMatchObject(failed);
  expect(await get(table, 'key')).toBe('value');
  await table.close();
  await executor.close();
});

test('closing does not wait for ever for files that never come', async () => {
  const options = { files: { specifier: filesThat('return new Promise(() => {})'), config: null }, clock: systemClock };
  const executor = new WorkerExecutor({ ...options, closeTimeoutMs: 50 });
  const table = tableOn(executor);
  put(table, 'key', 'value');
  const snapshot = table.snapshot();
  const closing = table.close();
  await expect(snapshot).rejects.toMatchObject({ code: 'lsm-closed' });
  await executor.close();
  await closing;
});

test('when the thread cannot start, a snapshot fails with the reason and the rest of the table goes on', async () => {
  const executor = executorOf(new URL('./no-such-module.ts', import.meta.url).href);
  const table = tableOn(executor);
  put(table, 'key', 'value');
  await expect(table.snapshot()).rejects.toMatchObject({ code: 'lsm-worker-failed', kind: 'retry' });
  expect(await get(table, 'key')).toBe('value');
  await table.close();
  await executor.close();
});
