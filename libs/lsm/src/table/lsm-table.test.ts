import { BlockCache } from '@millrace/cache';
import { MillraceError } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import { noTelemetry } from '@millrace/telemetry';
import { expect, test } from 'vitest';
import type { BackgroundExecutor } from '../background/executor.ts';
import { inlineExecutor } from '../background/inline-executor.ts';
import { defaultLsmLimits, type LsmLimits } from '../limits.ts';
import { allTables, filesOf, type Manifest } from '../manifest/manifest.ts';
import { collect, get, getMany, put, remove, scanAll, tinyLimits } from '../testing/driver.ts';
import { MemoryFileStore } from '../testing/memory-file-store.ts';
import { LsmTable } from './lsm-table.ts';

const noCompaction: LsmLimits = {
  ...tinyLimits,
  l0RunsSlow: 1000,
  l0RunsStop: 1000,
  compaction: { ...tinyLimits.compaction, l0Runs: 1000 },
};

interface SetUp {
  readonly limits?: LsmLimits;
  readonly manifest?: Manifest;
  readonly files?: MemoryFileStore;
  readonly cacheBytes?: number;
  readonly wrap?: (executor: BackgroundExecutor) => BackgroundExecutor;
}

function setUp(options: SetUp = {}) {
  const files = options.files ?? new MemoryFileStore();
  const clock = new ManualClock(1000);
  const cache = new BlockCache({ bytesMax: options.cacheBytes ?? 1 << 20 });
  const executor = (options.wrap ?? ((inner) => inner))(inlineExecutor(files));
  const table = new LsmTable({
    files,
    executor,
    cache,
    clock,
    telemetry: noTelemetry,
    limits: options.limits ?? tinyLimits,
    ...(options.manifest === undefined ? {} : { manifest: options.manifest }),
  });
  return { table, files, clock, cache };
}

/** Lets the executor's work of the moment finish. */
async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Builds wait until `open` is called. */
function gated(kind: 'flush' | 'merge') {
  let open = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const wrap = (inner: BackgroundExecutor): BackgroundExecutor => ({
    flush: async (...task) => {
      if (kind === 'flush') await gate;
      return inner.flush(...task);
    },
    merge: async (...task) => {
      if (kind === 'merge') await gate;
      return inner.merge(...task);
    },
    discard: (files) => inner.discard(files),
    close: () => inner.close(),
  });
  return { wrap, open: () => open() };
}

test('a value far beyond the memtable is stored and read; one beyond the limit is refused, naming it', async () => {
  const { table } = setUp();
  const size = 8 * 1024 * 1024;
  const bytes = Buffer.alloc(size + 3);
  for (let i = 0; i < bytes.length; i += 8) bytes.writeUInt16LE((i >>> 8) & 0xffff, Math.min(i, bytes.length - 2));
  bytes.write('big');
  table.put(bytes, 0, 3, 3, bytes.length, 0);
  put(table, 'small', 'value');
  await table.snapshot();
  expect(await get(table, 'small')).toBe('value');
  const values = await table.multiGet({ count: 1, bytes: Buffer.from('big'), offsets: Uint32Array.of(0, 3) });
  expect(Buffer.compare(values.bytes, bytes.subarray(3))).toBe(0);
  expect(() => table.put(bytes, 0, 3, 3, 3 + 64 * 1024 * 1024 + 1, 0)).toThrow(
    expect.objectContaining({ code: 'lsm-entry-too-large', message: expect.stringContaining('67108864') }),
  );
  await table.close();
});

test('a damaged block is an error that names the file, and other blocks stay readable', async () => {
  const { table, files } = setUp({ limits: noCompaction });
  for (let i = 100; i < 130; i++) put(table, `key ${i}`, `value ${i} ${'x'.repeat(50)}`);
  await table.snapshot();
  const [[id, bytes]] = [...files.files] as [[string, Uint8Array]];
  bytes[10] = (bytes[10] as number) ^ 1;
  await expect(get(table, 'key 100')).rejects.toMatchObject({ code: 'lsm-corrupt', details: { file: id } });
  await expect(scanAll(table)).rejects.toMatchObject({ code: 'lsm-corrupt', details: { file: id } });
  expect(await get(table, 'key 129')).toContain('value 129');
  await table.close();
});

test('a table whose filter, index or footer is damaged is refused, naming the file', async () => {
  for (const fromEnd of [1, 20, 60, 200]) {
    const { table, files } = setUp({ limits: noCompaction });
    for (let i = 100; i < 130; i++) put(table, `key ${i}`, `value ${i}`);
    await table.snapshot();
    const [[id, bytes]] = [...files.files] as [[string, Uint8Array]];
    bytes[bytes.length - fromEnd] = (bytes[bytes.length - fromEnd] as number) ^ 1;
    await expect(get(table, 'key 100')).rejects.toMatchObject({ code: 'lsm-corrupt', details: { file: id } });
    await table.close();
  }
});

test('expired entries hide what is older, are never returned, and leave no byte after compaction', async () => {
  const { table, clock, files } = setUp({
    limits: { ...tinyLimits, compaction: { ...tinyLimits.compaction, l0Runs: 3 } },
  });
  for (let i = 0; i < 20; i++) put(table, `key ${i}`, 'the older value');
  await table.snapshot();
  for (let i = 0; i < 20; i++) put(table, `key ${i}`, 'the newer value', 2000);
  await table.snapshot();
  clock.advance(1000);
  expect(await getMany(table, ['key 1', 'key 2'])).toEqual([undefined, undefined]);
  expect(await scanAll(table)).toEqual([]);
  put(table, 'unrelated', 'value');
  const { manifest } = await table.snapshot();
  await table.compacted();
  const after = (await table.snapshot()).manifest;
  expect(await scanAll(table)).toEqual([['unrelated', 'value']]);
  expect(allTables(manifest).length).toBeGreaterThan(1);
  expect(allTables(after).map((each) => each.info.entries)).toEqual([1]);
  expect(files.files.size).toBeGreaterThan(1);
  await table.close();
});

test('a table of which everything has expired goes without being read', async () => {
  const { table, clock, files } = setUp({ limits: noCompaction });
  for (let i = 0; i < 20; i++) put(table, `key ${i}`, 'value', 1500);
  await table.snapshot();
  clock.advance(1000);
  const { reads } = files;
  await table.compacted();
  expect(files.reads).toBe(reads);
  expect(filesOf((await table.snapshot()).manifest)).toEqual([]);
  await table.close();
});

test('deletes reach the bottom and vanish', async () => {
  const { table } = setUp();
  for (let i = 0; i < 50; i++) put(table, `key ${i}`, 'value');
  await table.snapshot();
  for (let i = 0; i < 50; i++) remove(table, `key ${i}`);
  await table.snapshot();
  await table.compacted();
  expect(filesOf((await table.snapshot()).manifest)).toEqual([]);
  await table.close();
});

test('files made and compacted away between two snapshots go at once, files of a snapshot never', async () => {
  const { table, files } = setUp();
  put(table, 'first', 'value');
  const { manifest } = await table.snapshot();
  for (let i = 0; i < 2000; i++) put(table, `key ${i % 100}`, 'x'.repeat(100));
  await settle();
  await table.compacted();
  expect(files.discarded.length).toBeGreaterThan(0);
  for (const file of filesOf(manifest)) expect(files.files.has(file.id)).toBe(true);
  await table.close();
});

test('a scan keeps its files until it ends, also when it is left early', async () => {
  const { table, files } = setUp({ limits: { ...tinyLimits, pageBytes: 100 } });
  for (let i = 0; i < 400; i++) put(table, `key ${i}`, 'x'.repeat(100));
  await settle();
  await table.compacted();
  const before = [...files.files.keys()];
  const pages = table.scan({ start: Buffer.from('') });
  const iterator = pages[Symbol.asyncIterator]();
  await iterator.next();
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i < 400; i++) put(table, `key ${i}`, `${round}`.repeat(100));
    await settle();
    await table.compacted();
  }
  for (const id of before) expect(files.files.has(id), `${id} is read by the scan`).toBe(true);
  await iterator.return?.();
  expect(before.some((id) => files.files.has(id))).toBe(false);
  await table.close();
});

test('a scan sees the table as of its call, whatever is written or compacted meanwhile', async () => {
  const { table } = setUp();
  for (let i = 100; i < 400; i++) put(table, `key ${i}`, 'before');
  const pages = table.scan({ start: Buffer.from('key 100'), pageEntriesMax: 7 });
  for (let i = 100; i < 400; i++) put(table, `key ${i}`, 'after '.repeat(30));
  await settle();
  await table.compacted();
  const seen = await collect(pages);
  expect(seen.length).toBe(300);
  expect(new Set(seen.map(([, value]) => value))).toEqual(new Set(['before']));
  await table.close();
});

test('writers wait while memtables wait for their flush, and go on after it', async () => {
  const gate = gated('flush');
  const { table } = setUp({ wrap: gate.wrap });
  while (table.stats().memtablesFrozen <= tinyLimits.frozenMax) put(table, `key ${Math.random()}`, 'x'.repeat(200));
  let admitted = false;
  const waiting = Promise.resolve(table.admit()).then(() => {
    admitted = true;
  });
  await settle();
  expect(admitted).toBe(false);
  expect(table.stats().writersWaiting).toBe(1);
  gate.open();
  await waiting;
  expect(table.stats().memtablesFrozen).toBeLessThanOrEqual(tinyLimits.frozenMax);
  await table.close();
});

test('a writer in backpressure is rejected when the flush fails, and when the table is closed', async () => {
  const { table, files } = setUp();
  files.before = () => {
    throw new MillraceError('lsm-worker-failed', 'no space');
  };
  while (table.stats().memtablesFrozen <= tinyLimits.frozenMax) put(table, `key ${Math.random()}`, 'x'.repeat(200));
  await expect(Promise.resolve(table.admit())).rejects.toMatchObject({ message: 'no space' });
  await table.close();

  const gate = gated('flush');
  const other = setUp({ wrap: gate.wrap }).table;
  while (other.stats().memtablesFrozen <= tinyLimits.frozenMax) put(other, `key ${Math.random()}`, 'x'.repeat(200));
  const waiting = Promise.resolve(other.admit());
  const closing = other.close();
  await expect(waiting).rejects.toMatchObject({ code: 'lsm-closed' });
  gate.open();
  await closing;
});

test('a snapshot that fails loses nothing: the next one has it all', async () => {
  const { table, files } = setUp();
  put(table, 'a', '1');
  files.before = (operation) => {
    if (operation === 'seal') throw new MillraceError('lsm-worker-failed', 'no space');
  };
  await expect(table.snapshot()).rejects.toMatchObject({ message: 'no space' });
  expect(files.openWriters).toBe(0);
  files.before = () => undefined;
  put(table, 'b', '2');
  const { manifest, bytesPut } = await table.snapshot();
  const restored = setUp({ files, manifest }).table;
  expect(await scanAll(restored)).toEqual([
    ['a', '1'],
    ['b', '2'],
  ]);
  expect(bytesPut).toBe(filesOf(manifest).reduce((sum, file) => sum + file.sizeBytes, 0));
  await Promise.all([table.close(), restored.close()]);
});

test('a snapshot does not wait for a compaction; writers slow down and then wait for it', async () => {
  const gate = gated('merge');
  const { table, clock } = setUp({ wrap: gate.wrap, limits: { ...tinyLimits, l0RunsSlow: 3, l0RunsStop: 5 } });
  for (let i = 0; i < 4; i++) {
    put(table, `key ${i}`, 'value');
    await table.snapshot();
  }
  let admitted = 0;
  const count = (): void => void admitted++;
  const slow = Promise.resolve(table.admit()).then(count);
  await settle();
  expect(admitted).toBe(0);
  clock.advance(tinyLimits.slowDownMs);
  await slow;
  put(table, 'one more', 'value');
  await table.snapshot();
  const stopped = Promise.resolve(table.admit()).then(count);
  clock.advance(1000);
  await settle();
  expect(admitted).toBe(1);
  gate.open();
  await stopped;
  await table.compacted();
  expect(table.stats().l0Runs).toBeLessThan(tinyLimits.compaction.l0Runs);
  await table.close();
});

test('bytes put are those of new files, bytes linked those of known ones', async () => {
  const { table, files } = setUp({ limits: noCompaction });
  put(table, 'a', '1');
  const first = await table.snapshot();
  put(table, 'b', '2');
  const second = await table.snapshot();
  const third = await table.snapshot();
  const size = (manifest: Manifest): number => filesOf(manifest).reduce((sum, file) => sum + file.sizeBytes, 0);
  expect(first).toMatchObject({ bytesPut: size(first.manifest), bytesLinked: 0 });
  expect(second).toMatchObject({
    bytesPut: size(second.manifest) - size(first.manifest),
    bytesLinked: size(first.manifest),
  });
  expect(third).toMatchObject({ bytesPut: 0, bytesLinked: size(second.manifest) });
  const restored = setUp({ files, manifest: third.manifest }).table;
  expect(await restored.snapshot()).toMatchObject({ bytesPut: 0, bytesLinked: size(third.manifest) });
  await Promise.all([table.close(), restored.close()]);
});

test('neighbouring blocks are fetched by one read, and a block that two reads want is fetched once', async () => {
  const { table, files } = setUp({ limits: noCompaction });
  const keys = Array.from({ length: 100 }, (_, i) => `key ${100 + i}`);
  for (const key of keys) put(table, key, 'x'.repeat(100));
  await table.snapshot();
  await get(table, keys[0] as string);
  const { reads } = files;
  const [many, one] = await Promise.all([getMany(table, keys), get(table, keys[50] as string)]);
  expect(many.every((value) => value === 'x'.repeat(100))).toBe(true);
  expect(one).toBe('x'.repeat(100));
  const tables = table.stats().files;
  expect(files.reads - reads).toBeLessThanOrEqual(tables * 2);
  await table.close();
});

test('caches and indexes give their memory back', async () => {
  const { table, cache } = setUp({ cacheBytes: 8192 });
  for (let i = 0; i < 300; i++) put(table, `key ${i}`, 'x'.repeat(100));
  await table.snapshot();
  for (let i = 0; i < 300; i++) {
    await get(table, `key ${i}`);
    expect(cache.bytes === 0 || cache.bytes + cache.reservedBytes <= 8192).toBe(true);
  }
  expect(cache.reservedBytes).toBe(table.stats().indexBytes);
  await table.close();
  expect([cache.bytes, cache.reservedBytes]).toEqual([0, 0]);
});

test('memtables hold no more memory than their bound, however long the writes go on', async () => {
  const { table } = setUp();
  let bytesMax = 0;
  for (let i = 0; i < 3000; i++) {
    put(table, `key ${i % 500}`, 'x'.repeat(i % 7 === 0 ? 4000 : 20));
    bytesMax = Math.max(bytesMax, table.stats().memtableBytes);
    await table.admit();
  }
  expect(bytesMax).toBeGreaterThan(tinyLimits.memtableBytes);
  expect(bytesMax).toBeLessThanOrEqual((tinyLimits.frozenMax + 2) * tinyLimits.memtableBytes);
  await table.close();
});

test('an expiry that is no time is refused before anything is stored', async () => {
  const { table } = setUp();
  expect(() => put(table, 'key', 'value', Number.NaN)).toThrow(expect.objectContaining({ code: 'invariant-broken' }));
  expect(() => put(table, 'key', 'value', -1)).toThrow(expect.objectContaining({ code: 'invariant-broken' }));
  expect(await get(table, 'key')).toBeUndefined();
  await table.close();
});

test('contradicting limits are refused, naming the setting', () => {
  expect(() => setUp({ limits: { ...tinyLimits, l0RunsSlow: 20, l0RunsStop: 10 } })).toThrow(
    expect.objectContaining({ code: 'bad-setting', message: expect.stringContaining('l0RunsSlow') }),
  );
});

test('blocks of many keys are read at the same time, up to the limit', async () => {
  const { table, files } = setUp({ cacheBytes: 0, limits: { ...noCompaction, readsMax: 8 } });
  const keys = Array.from({ length: 20 }, (_, i) => `key-${10 + i}`);
  for (const key of keys) {
    put(table, key, 'x'.repeat(200));
    await table.snapshot();
  }
  await getMany(table, keys); // opens the tables
  let running = 0;
  let most = 0;
  files.before = async () => {
    most = Math.max(most, ++running);
    await settle();
    running--;
  };
  expect(await getMany(table, keys)).toEqual(keys.map(() => 'x'.repeat(200)));
  expect(most).toBe(8);
  await table.close();
});

test('values of hundreds of kilobytes and one of 64 MiB are flushed, merged and read back', async () => {
  const limits: LsmLimits = { ...defaultLsmLimits, memtableBytes: 1024 * 1024 };
  const { table, files } = setUp({ limits, cacheBytes: 0 });
  const sizes = [300_000, 500_000, 64 * 1024 * 1024, 200_000];
  for (let round = 0; round < 4; round++) {
    for (const [i, size] of sizes.entries()) {
      if (round > 0 && size > 1e6) continue;
      put(table, `key-${i}`, String.fromCharCode(97 + round).repeat(size));
      await table.admit();
    }
    await table.snapshot();
  }
  await table.compacted();
  expect(table.stats().compaction.merges).toBeGreaterThan(0);
  const values = await getMany(table, ['key-0', 'key-1', 'key-2', 'key-3']);
  expect(values.map((value) => [value?.[0], value?.length])).toEqual([
    ['d', 300_000],
    ['d', 500_000],
    ['a', 64 * 1024 * 1024],
    ['d', 200_000],
  ]);
  expect(files.openWriters).toBe(0);
  await table.close();
});
