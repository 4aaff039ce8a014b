import { BlockCache } from '@millrace/cache';
import { MillraceError } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import { noTelemetry } from '@millrace/telemetry';
import { expect, test } from 'vitest';
import { inlineExecutor } from '../background/inline-executor.ts';
import { filesOf } from '../manifest/manifest.ts';
import { LsmTable } from '../table/lsm-table.ts';
import { put, scanAll, tinyLimits } from '../testing/driver.ts';
import { MemoryFileStore } from '../testing/memory-file-store.ts';
import { compact } from './compact.ts';
import type { MergeAnswer, MergeRequest, MergeService } from './merge-service.ts';
import { defaultRemoteExecutorLimits, RemoteExecutor } from './remote-executor.ts';

type Compactor = (request: MergeRequest, signal: AbortSignal) => Promise<MergeAnswer>;

const limits = { ...defaultRemoteExecutorLimits, bytesMin: 0 };

function setUp(answer: (files: MemoryFileStore, compactor: Compactor) => Compactor) {
  const files = new MemoryFileStore();
  const clock = new ManualClock(1000);
  /** Over JSON, as in life. */
  const honest: Compactor = async (request, signal) => {
    const { merge, output } = JSON.parse(JSON.stringify(request)) as MergeRequest;
    return { tables: await compact(merge, { files: files.under(output), signal }), attempts: 1 };
  };
  const asked: MergeRequest[] = [];
  const work = answer(files, honest);
  const service: MergeService = {
    merge: (request, signal) => {
      asked.push(request);
      return work(request, signal);
    },
    close: () => undefined,
  };
  const executor = new RemoteExecutor({
    service,
    local: inlineExecutor(files),
    files,
    clock,
    telemetry: noTelemetry,
    limits,
  });
  const cache = new BlockCache({ bytesMax: 0 });
  const table = new LsmTable({ files, executor, cache, clock, telemetry: noTelemetry, limits: tinyLimits });
  return { files, clock, executor, table, asked };
}

/** Writes so much that there is something to merge; the model of what the table holds. */
async function fill(table: LsmTable, round: string): Promise<Array<[string, string]>> {
  const entries: Array<[string, string]> = [];
  for (let i = 100; i < 300; i++) {
    const entry: [string, string] = [`key-${i}`, `${round}-${i}`.padEnd(50, '.')];
    entries.push(entry);
    put(table, ...entry);
    if (i % 50 === 49) await table.snapshot();
  }
  await table.compacted();
  return entries;
}

/** Exactly the files of the manifest are there: nothing is lost and nothing is left. */
async function expectNothingLeft(table: LsmTable, files: MemoryFileStore): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
  const named = filesOf((await table.snapshot()).manifest).map((file) => file.id);
  const snapshotted = [...files.files.keys()].filter((id) => id.startsWith('file-') && !named.includes(id));
  expect([...files.files.keys()].filter((id) => !snapshotted.includes(id)).sort()).toEqual(named.sort());
}

test('a compactor merges, and its files are those of the table', async () => {
  const { table, files, executor, asked } = setUp((_, honest) => honest);
  const entries = await fill(table, 'a');
  expect(await scanAll(table)).toEqual(entries);
  expect(executor.stats).toMatchObject({ remoteMerges: asked.length, fallbacks: 0 });
  expect(asked.length).toBeGreaterThan(0);
  // What one compactor made and no snapshot has, the merge of another replaces: then it goes.
  for (let i = 0; i < 4000; i++) {
    put(table, `key-${100 + (i % 200)}`, `b-${i}`.padEnd(200, '.'));
    if (i % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await table.compacted();
  expect(files.discarded.some((id) => id.startsWith('delegated-'))).toBe(true);
  await expectNothingLeft(table, files);
  await table.close();
});

test('when nobody takes it, a merge is done here, and for a while nobody is asked', async () => {
  let isAway = true;
  const { table, clock, executor, asked } = setUp((_, honest) => async (request, signal) => {
    if (isAway) throw new MillraceError('compaction-unanswered', 'nobody');
    return honest(request, signal);
  });
  expect(await scanAll(table)).toEqual([]);
  const entries = await fill(table, 'a');
  expect(await scanAll(table)).toEqual(entries);
  expect(asked).toHaveLength(1);
  expect(executor.stats).toMatchObject({ remoteMerges: 0, fallbacks: 1 });
  isAway = false;
  clock.advance(limits.pauseMs);
  await fill(table, 'b');
  expect(executor.stats.remoteMerges).toBeGreaterThan(0);
  await table.close();
});

test('a compactor that dies in the middle changes nothing, and what it had made is removed', async () => {
  const { table, files, executor } = setUp((store) => async ({ output }) => {
    await (await store.under(output).create()).seal();
    throw new MillraceError('compaction-failed', 'its heartbeat stopped');
  });
  const entries = await fill(table, 'a');
  expect(await scanAll(table)).toEqual(entries);
  expect(executor.stats).toMatchObject({ remoteMerges: 0, fallbacks: 1, filesCleaned: 1 });
  await expectNothingLeft(table, files);
  await table.close();
});

test('a compactor that finishes after it was given up is not believed, and its files go', async () => {
  let finish: (() => Promise<unknown>) | undefined;
  const { table, files, clock, executor } = setUp((_, honest) => (request, signal) => {
    finish ??= () => honest(request, signal);
    return Promise.reject(new MillraceError('compaction-failed', 'it takes too long'));
  });
  const entries = await fill(table, 'a');
  // Its inputs may be gone by now, or it may still have them: here it has made a file of its own by then.
  await finish?.().catch(() => undefined);
  files.files.set('delegated-0-zombie', new Uint8Array(7));
  expect(await scanAll(table)).toEqual(entries);
  clock.advance(limits.lateMs);
  await expectNothingLeft(table, files);
  expect(executor.stats.filesCleaned).toBeGreaterThan(0);
  await table.close();
});

test('of two compactors that do the same the answer of one is taken, and the files of the other go', async () => {
  const { table, files, executor } = setUp((_, honest) => async (request, signal) => {
    const [first, second] = await Promise.all([honest(request, signal), honest(request, signal)]);
    expect(first.tables.map((info) => info.file.id)).not.toEqual(second.tables.map((info) => info.file.id));
    return { ...second, attempts: 2 };
  });
  const entries = await fill(table, 'a');
  expect(await scanAll(table)).toEqual(entries);
  expect(executor.stats.filesCleaned).toBeGreaterThan(0);
  expect(executor.stats.fallbacks).toBe(0);
  await expectNothingLeft(table, files);
  await table.close();
});

test.each<[string, (answer: MergeAnswer) => MergeAnswer]>([
  [
    'files of somebody else',
    ({ tables, ...rest }) => ({
      ...rest,
      tables: tables.map((info) => ({ ...info, file: { ...info.file, id: 'file-0' } })),
    }),
  ],
  ['tables out of order', ({ tables, ...rest }) => ({ ...rest, tables: [...tables, ...tables] })],
  [
    'more entries than there were',
    ({ tables, ...rest }) => ({ ...rest, tables: tables.map((info) => ({ ...info, entries: 1e6 })) }),
  ],
])('an answer that cannot be right is not used: %s', async (_name, change) => {
  const { table, files, executor } = setUp(
    (_, honest) =>
      async (...all) =>
        change(await honest(...all)),
  );
  const entries = await fill(table, 'a');
  expect(await scanAll(table)).toEqual(entries);
  expect(executor.stats).toMatchObject({ remoteMerges: 0, fallbacks: 1 });
  await expectNothingLeft(table, files);
  await table.close();
});

test('a request has a bound that grows with its bytes', async () => {
  const { table, asked } = setUp((_, honest) => honest);
  await fill(table, 'a');
  for (const { timeoutMs } of asked) {
    expect(timeoutMs).toBeGreaterThan(limits.baseMs);
    expect(timeoutMs).toBeLessThan(limits.baseMs + 1000);
  }
  await table.close();
});

test('closing gives a merge up that is under way, and tells who does it', async () => {
  let told: AbortSignal | undefined;
  const { table, executor, files } = setUp((_, honest) => (request, signal) => {
    told = signal;
    const work = honest(request, signal);
    work.catch(() => undefined);
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new MillraceError('cancelled', 'stopped')));
    });
  });
  for (let i = 0; i < 4; i++) {
    put(table, `key-${i}`, 'x'.repeat(100));
    await table.snapshot();
  }
  const closing = table.close();
  await executor.close();
  await closing;
  expect(told?.aborted).toBe(true);
  await new Promise((resolve) => setImmediate(resolve));
  expect([...files.files.keys()].filter((id) => id.startsWith('delegated-'))).toEqual([]);
});

test('small merges and those of very many tables are done here', async () => {
  const files = new MemoryFileStore();
  const clock = new ManualClock(1000);
  const service: MergeService = { merge: () => Promise.reject(new Error('asked')), close: () => undefined };
  const make = (changes: Partial<typeof limits>) =>
    new RemoteExecutor({
      service,
      local: inlineExecutor(files),
      files,
      clock,
      telemetry: noTelemetry,
      limits: { ...limits, ...changes },
    });
  for (const executor of [make({ bytesMin: 1e9 }), make({ tablesMax: 1 })]) {
    const cache = new BlockCache({ bytesMax: 0 });
    const table = new LsmTable({ files, executor, cache, clock, telemetry: noTelemetry, limits: tinyLimits });
    const entries = await fill(table, 'a');
    expect(await scanAll(table)).toEqual(entries);
    expect(executor.stats).toMatchObject({ remoteMerges: 0, fallbacks: 0 });
    await table.close();
  }
});

test('a task of another version is refused', async () => {
  const files = new MemoryFileStore();
  const json = { version: 2, runs: [], isBottom: true, nowMs: 0, options: tinyLimits.tables };
  await expect(compact(json, { files, signal: new AbortController().signal })).rejects.toMatchObject({
    code: 'lsm-format',
  });
});
