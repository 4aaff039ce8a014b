import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock, systemRandom as random, systemClock } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import {
  packedItem,
  packedValue,
  packKeys,
  type SnapshotHandle,
  type StateStore,
  type StateTable,
  type TableSpec,
  WriteBatch,
} from '@millrace/state';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openKvStore, rocksDbEngine } from './index.ts';

let directory: string;
const stores: StateStore[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'millrace-kv-'));
});
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()));
  rmSync(directory, { recursive: true, force: true });
});

async function openStore(clock: Clock = systemClock, memtableBytes = 256 * 1024): Promise<StateStore> {
  const engine = rocksDbEngine({ memtableBytes });
  const store = await openKvStore({ directory, engine, sweepEntriesPerSecond: 4000, clock, random, telemetry });
  stores.push(store);
  return store;
}

const spec: TableSpec = {
  job: 'job',
  operator: 'count',
  subtask: 0,
  keyGroups: { start: 0, end: 127 },
  maxParallelism: 128,
  generation: 1,
};

function keyOf(i: number): Uint8Array {
  const group = i % 128;
  return Uint8Array.from([group >>> 8, group & 0xff, 0, 1, ...Buffer.from(`key ${i}`)]);
}

function batchOf(
  count: number,
  value: (i: number) => string,
  expiresAtMs: (i: number) => number = () => 0,
): WriteBatch {
  const batch = new WriteBatch();
  for (let i = 0; i < count; i++) {
    batch.begin();
    batch.arena.raw(keyOf(i));
    batch.endKey();
    batch.arena.utf8(value(i));
    batch.put(expiresAtMs(i));
  }
  return batch;
}

async function count(table: StateTable): Promise<number> {
  let entries = 0;
  for await (const page of table.scan({ start: new Uint8Array() })) entries += page.keys.count;
  return entries;
}

/** Bytes on disk, each file once however many names it has. */
function diskBytes(): number {
  const seen = new Map<number, number>();
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const { ino, size } = statSync(join(entry.parentPath, entry.name));
    if (entry.name.endsWith('.sst')) seen.set(ino, size);
  }
  return [...seen.values()].reduce((sum, size) => sum + size, 0);
}

test('from 1 to 4 to 2 subtasks and back no state is written', async () => {
  // One file: compaction, which goes on in each of them, has nothing to do.
  const store = await openStore(systemClock, 16 << 20);
  const table = await store.openTable(spec, []);
  await table.write(batchOf(20_000, (i) => `value ${i}`.padEnd(100, '.')));
  let handles: SnapshotHandle[] = [await table.snapshot(1)];
  await table.close();
  const bytes = diskBytes();
  expect(bytes).toBeGreaterThan(500_000);
  for (const [step, parallelism] of [4, 2, 1].entries()) {
    const tables = await Promise.all(
      Array.from({ length: parallelism }, (_, subtask) => {
        const keyGroups = { start: (subtask * 128) / parallelism, end: ((subtask + 1) * 128) / parallelism - 1 };
        return store.openTable({ ...spec, subtask, keyGroups, generation: step + 2 }, handles);
      }),
    );
    const counts = await Promise.all(tables.map(count));
    expect(counts.reduce((sum, one) => sum + one)).toBe(20_000);
    handles = await Promise.all(tables.map((one) => one.snapshot(step + 2)));
    await Promise.all(tables.map((one) => one.close()));
    // Marks of ranges that belong to others, some hundreds of bytes each.
    expect(diskBytes() - bytes).toBeLessThan(20_000);
  }
});

test('a snapshot taken in the middle of heavy writes and compactions holds one moment', {
  timeout: 60_000,
}, async () => {
  const store = await openStore();
  const table = await store.openTable(spec, []);
  const handles: SnapshotHandle[] = [];
  const taking: Promise<unknown>[] = [];
  for (let round = 0; round < 60; round++) {
    const writing = table.write(batchOf(2000, () => `round ${round} `.padEnd(120, '.')));
    if (round % 6 === 5) taking.push(table.snapshot(round).then((handle) => handles.push(handle)));
    if (writing !== undefined) await writing;
  }
  await Promise.all(taking);
  expect(handles).toHaveLength(10);
  for (const [i, handle] of handles.entries()) {
    const restored = await store.openTable({ ...spec, generation: 2 + i }, [handle]);
    const rounds = new Set<string>();
    for await (const page of restored.scan({ start: new Uint8Array() })) {
      for (let at = 0; at < page.values.count; at++) {
        rounds.add(/round \d+/.exec(Buffer.from(packedItem(page.values, at)).toString())?.[0] ?? '');
      }
    }
    expect([...rounds]).toEqual([`round ${i * 6 + 5}`]);
    await restored.close();
  }
});

test('reads and writes in any order: a read sees what was written before it and nothing later', async () => {
  const store = await openStore();
  const table = await store.openTable(spec, []);
  const reads: Promise<string | undefined>[] = [];
  for (let n = 0; n < 200; n++) {
    const writing = table.write(batchOf(1, () => String(n)));
    if (writing !== undefined) await writing;
    const values = Promise.resolve(table.multiGet(packKeys([keyOf(0)])));
    reads.push(values.then((packed) => Buffer.from(packedValue(packed, 0) ?? []).toString()));
  }
  expect(await Promise.all(reads)).toEqual(Array.from({ length: 200 }, (_, n) => String(n)));
});

test('what has expired is removed from the disk in small steps, and nothing else', async () => {
  const clock = new ManualClock(1000);
  const store = await openStore(clock);
  const table = await store.openTable(spec, []);
  await table.write(
    batchOf(
      6000,
      (i) => `value ${i}`,
      (i) => (i % 3 === 0 ? 2000 : 0),
    ),
  );
  const first = await table.snapshot(1);
  clock.advance(1000);
  for (let step = 0; step < 40; step++) {
    clock.advance(250);
    // The sweep works on its own: it is given the time to.
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const second = await table.snapshot(2);
  expect(table.stats().entriesEstimate).toBeLessThanOrEqual(4000);
  // The time goes back: what is still there comes to light.
  const [before, after] = await Promise.all(
    [first, second].map(async (handle, i) => {
      const other = await openStore(new ManualClock(1000));
      return count(await other.openTable({ ...spec, generation: 10 + i }, [handle]));
    }),
  );
  expect([before, after]).toEqual([6000, 4000]);
});

test('what a database holds of the key groups of others is dropped after a while, and nothing else', async () => {
  const clock = new ManualClock(1000);
  const store = await openStore(clock);
  const table = await store.openTable(spec, []);
  await table.write(batchOf(12_800, (i) => `value ${i}`));
  const handle = await table.snapshot(1);
  const half = { ...spec, keyGroups: { start: 64, end: 127 }, generation: 2 };
  const restored = await store.openTable(half, [handle]);
  const early = await restored.snapshot(2);
  clock.advance(60_000);
  await new Promise((resolve) => setTimeout(resolve, 50));
  const late = await restored.snapshot(3);
  expect(await count(restored)).toBe(6400);
  for (const [i, one] of [early, late].entries()) {
    const again = await store.openTable({ ...half, generation: 3 + i }, [one]);
    expect(await count(again)).toBe(6400);
  }
});

test('what a crash left behind is removed at the next start; snapshots stay', async () => {
  const store = await openStore();
  const table = await store.openTable(spec, []);
  await table.write(batchOf(100, (i) => `value ${i}`));
  const handle = await table.snapshot(1);
  await store.close();
  const left = [
    `jobs/job/count/snapshots/9-g1-k0.partial/part-0`,
    `work/${process.pid}-1-dead/0`, // a process of this number, before this one
    'work/2147483647-1-dead/0',
  ];
  for (const path of left) mkdirSync(join(directory, path), { recursive: true });
  const next = await openStore();
  expect(left.filter((path) => existsSync(join(directory, path)))).toEqual([]);
  expect(await count(await next.openTable({ ...spec, generation: 2 }, [handle]))).toBe(100);
});

test('another maxParallelism is refused, naming the right one', async () => {
  const store = await openStore();
  const handle = await (await store.openTable(spec, [])).snapshot(1);
  await expect(store.openTable({ ...spec, maxParallelism: 256, generation: 2 }, [handle])).rejects.toMatchObject({
    code: 'kv-shards-fixed',
    message: expect.stringContaining('set maxParallelism to 128'),
  });
});

test('a released snapshot is gone, and tables restored from it go on', async () => {
  const store = await openStore();
  const table = await store.openTable(spec, []);
  await table.write(batchOf(100, (i) => `value ${i}`));
  const handle = await table.snapshot(1);
  const restored = await store.openTable({ ...spec, generation: 2 }, [handle]);
  const id = String(handle.data['snapshot']);
  expect(await store.retained?.jobs()).toEqual(['job']);
  expect(await store.retained?.list('job')).toEqual([id]);
  await store.retained?.release('job', id);
  await store.retained?.release('job', id);
  expect(await store.retained?.list('job')).toEqual([]);
  expect(await count(restored)).toBe(100);
  await expect(store.openTable({ ...spec, generation: 3 }, [handle])).rejects.toMatchObject({
    code: 'kv-snapshot-missing',
  });
});

test('a fork begins with the snapshot of another job', async () => {
  const store = await openStore();
  const table = await store.openTable(spec, []);
  await table.write(batchOf(100, (i) => `value ${i}`));
  const handle = await table.snapshot(1);
  const fork = await store.openTable({ ...spec, job: 'fork' }, [handle]);
  await fork.write(batchOf(50, () => 'of the fork'));
  expect(await count(table)).toBe(100);
  expect(await fork.snapshot(1)).toMatchObject({ data: { job: 'fork' } });
});

test('a handle that points outside of the home is refused', async () => {
  const store = await openStore();
  const handle = await (await store.openTable(spec, [])).snapshot(1);
  for (const snapshot of ['../../x/1-g1-k0', 'count/../../1-g1-k0', '%2e%2e/1-g1-k0', 'count/1-g1-k0/part-0']) {
    const wrong = { ...handle, data: { ...handle.data, snapshot } };
    await expect(store.openTable({ ...spec, generation: 2 }, [wrong])).rejects.toMatchObject({ code: 'bad-argument' });
  }
});
