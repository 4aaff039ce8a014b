import { MillraceError } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import { defaultLsmLimits, inlineExecutor } from '@millrace/lsm';
import {
  packKeys,
  type SnapshotHandle,
  type StateStore,
  type StateTable,
  type TableSpec,
  WriteBatch,
} from '@millrace/state';
import { noTelemetry, type Telemetry } from '@millrace/telemetry';
import { expect, test } from 'vitest';
import { openLsmStore } from './index.ts';
import { MemoryHome } from './testing/memory-home.ts';

const spec: TableSpec = {
  job: 'job',
  operator: 'count',
  subtask: 0,
  keyGroups: { start: 0, end: 127 },
  maxParallelism: 128,
  generation: 1,
};

function openStore(home: MemoryHome, telemetry: Telemetry = noTelemetry): StateStore {
  return openLsmStore({
    files: home.files,
    holders: home,
    namespace: home.namespace,
    executor: inlineExecutor(home.files),
    cacheBytes: 1 << 20,
    limits: defaultLsmLimits,
    clock: new ManualClock(1000),
    telemetry,
  });
}

function keyOf(keyGroup: number, i: number): Uint8Array {
  return Uint8Array.from([keyGroup >>> 8, keyGroup & 0xff, ...Buffer.from(`key ${i}`)]);
}

async function fill(table: StateTable, from: number, to: number): Promise<void> {
  const batch = new WriteBatch();
  for (let i = from; i < to; i++) {
    batch.begin();
    batch.arena.raw(keyOf(i % 128, i));
    batch.endKey();
    batch.arena.utf8(`value ${i}`);
    batch.put();
  }
  await table.write(batch);
}

const sizes = (home: MemoryHome): number => [...home.files.files.values()].reduce((sum, file) => sum + file.length, 0);

test('restoring at another parallelism reads no file and puts no byte', async () => {
  const home = new MemoryHome();
  const first = openStore(home);
  const table = await first.openTable(spec, []);
  await fill(table, 0, 5000);
  const handle = await table.snapshot(1);
  expect(handle.bytesPut).toBe(sizes(home));
  expect(handle.holders).toEqual(['job/snapshots/1/count-0-g1']);
  await first.close();

  const second = openStore(home);
  const { reads } = home.files;
  const handles: SnapshotHandle[] = [];
  for (let subtask = 0; subtask < 4; subtask++) {
    const keyGroups = { start: subtask * 32, end: subtask * 32 + 31 };
    const part = await second.openTable({ ...spec, subtask, keyGroups, generation: 2 }, [handle]);
    handles.push(await part.snapshot(2));
  }
  expect(home.files.reads).toBe(reads);
  expect(handles.map((each) => each.bytesPut)).toEqual([0, 0, 0, 0]);
  expect(handles.map((each) => each.bytesLinked)).toEqual(handles.map(() => sizes(home)));
  await second.close();
});

test('a snapshot whose holder cannot be written fails, and the next one holds everything', async () => {
  const home = new MemoryHome();
  const store = openStore(home);
  const table = await store.openTable(spec, []);
  await fill(table, 0, 10);
  home.beforePut = () => {
    throw new MillraceError('lsm-worker-failed', 'no answer');
  };
  await expect(table.snapshot(1)).rejects.toMatchObject({ message: 'no answer' });
  expect(home.objects.size).toBe(0);
  home.beforePut = () => undefined;
  const handle = await table.snapshot(2);
  await store.close();
  const again = await openStore(home).openTable({ ...spec, generation: 2 }, [handle]);
  const values = await again.multiGet(packKeys([keyOf(3, 3), keyOf(9, 9), keyOf(10, 10)]));
  expect([...values.present]).toEqual([1, 1, 0]);
  await again.close();
});

test('once fenced by the durable home, every call of a table fails as fenced', async () => {
  const home = new MemoryHome();
  const store = openStore(home);
  const table = await store.openTable(spec, []);
  home.beforePut = () => {
    throw new MillraceError('state-fenced', 'a newer generation owns the job');
  };
  await expect(table.snapshot(1)).rejects.toMatchObject({ kind: 'fenced' });
  expect(() => table.multiGet(packKeys([]))).toThrow(expect.objectContaining({ kind: 'fenced' }));
  await expect(fill(table, 0, 1)).rejects.toMatchObject({ kind: 'fenced' });
  await store.close();
});

test('a handle of another store is refused', async () => {
  const home = new MemoryHome();
  const store = openStore(home);
  const handle = await (await store.openTable(spec, [])).snapshot(1);
  await expect(store.openTable({ ...spec, generation: 2 }, [{ ...handle, store: 'kv' }])).rejects.toMatchObject({
    code: 'bad-argument',
  });
  await store.close();
});

test('a snapshot is one trace: the flush is a child of the snapshot, which is a child of the caller', async () => {
  const spans: Array<{ name: string; parent: string | undefined }> = [];
  const telemetry: Telemetry = {
    ...noTelemetry,
    tracer: {
      record: () => undefined,
      span: (name, { parent }, work) => {
        spans.push({ name, parent });
        return work({ context: `${parent}/${name}`, set: () => undefined });
      },
    },
  };
  const home = new MemoryHome();
  const store = openStore(home, telemetry);
  const table = await store.openTable(spec, [], 'open');
  await fill(table, 0, 10);
  await table.snapshot(1, 'round');
  expect(spans).toEqual([
    { name: 'state.restore', parent: 'open' },
    { name: 'state.snapshot', parent: 'round' },
    { name: 'lsm.flush', parent: 'round/state.snapshot' },
  ]);
  await store.close();
});

test('gauges follow the tables and end with the store', async () => {
  const gauges = new Map<string, () => number>();
  const telemetry: Telemetry = {
    ...noTelemetry,
    metrics: {
      ...noTelemetry.metrics,
      gauge: (name, _help, read) => {
        gauges.set(name, read);
        return () => void gauges.delete(name);
      },
    },
  };
  const home = new MemoryHome();
  const store = openStore(home, telemetry);
  const table = await store.openTable(spec, []);
  await fill(table, 0, 1000);
  await table.snapshot(1);
  await table.multiGet(packKeys([keyOf(1, 1)]));
  expect(gauges.get('millrace_lsm_files')?.()).toBe(1);
  expect(gauges.get('millrace_lsm_stored_bytes')?.()).toBe(sizes(home));
  expect(gauges.get('millrace_lsm_block_cache_bytes')?.()).toBeGreaterThan(0);
  await store.close();
  expect(gauges.size).toBe(0);
});
