/** The state store `cql` on a real ring of three: the conformance suite, what is purged, a node that dies. */
import { systemRandom as random, systemClock } from '@millrace/kernel';
import { openCqlStore, readCqlSettings } from '@millrace/kv-cql';
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
import { type OpenStateStore, stateStoreConformance } from '@millrace/state/testing';
import { serveStore } from '@millrace/state-service/testing';
import { MetricsRegistry, noTelemetry as telemetry } from '@millrace/telemetry';
import cassandra from 'cassandra-driver';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cassandraMissing } from '../support/cassandra/jars.ts';
import { CassandraRing } from '../support/cassandra/ring.ts';
import { eventually } from '../support/test-stack.ts';

const missing = cassandraMissing();

function spec(job: string, generation: number, changes: Partial<TableSpec> = {}): TableSpec {
  const keyGroups = { start: 0, end: 7 };
  return { job, operator: 'op', subtask: 0, keyGroups, maxParallelism: 8, generation, ...changes };
}

function key(n: number): Uint8Array {
  return new Uint8Array(Buffer.from([0, n % 8, ...Buffer.from(`key ${n}`)]));
}

/** Writes `value` under keys 0 to `count`. */
async function put(table: StateTable, count: number, value: string, expiresAtMs = 0): Promise<void> {
  const batch = new WriteBatch();
  for (let n = 0; n < count; n++) {
    batch.begin();
    batch.arena.raw(key(n));
    batch.endKey();
    batch.arena.raw(new Uint8Array(Buffer.from(value)));
    batch.put(expiresAtMs);
  }
  await table.write(batch);
}

async function get(table: StateTable, count: number): Promise<Set<string | undefined>> {
  const values = await table.multiGet(packKeys(Array.from({ length: count }, (_, n) => key(n))));
  return new Set(
    Array.from({ length: count }, (_, n) => {
      const value = packedValue(values, n);
      return value === undefined ? undefined : Buffer.from(value).toString();
    }),
  );
}

async function countOf(table: StateTable): Promise<number> {
  let count = 0;
  for await (const page of table.scan({ start: Uint8Array.of(0, 0) })) {
    for (let i = 0; i < page.keys.count; i++) count += packedItem(page.keys, i).length > 0 ? 1 : 0;
  }
  return count;
}

describe.skipIf(missing !== undefined)(`cql on three nodes${missing === undefined ? '' : ` (${missing})`}`, () => {
  let ring: CassandraRing;
  let client: cassandra.Client | undefined;

  beforeAll(async () => {
    ring = await CassandraRing.start(3);
    client = new cassandra.Client({
      contactPoints: [...ring.contactPoints],
      localDataCenter: 'datacenter1',
      protocolOptions: { port: ring.port },
    });
  }, 300_000);
  afterAll(async () => {
    await client?.shutdown();
    await ring?.[Symbol.asyncDispose]();
  });

  async function open(changes: Record<string, unknown> = {}): Promise<StateStore> {
    const settings = readCqlSettings(ring.backendOptions({ buckets: 2, ...changes }));
    return openCqlStore({ settings, clock: systemClock, stateClock: systemClock, random, telemetry });
  }

  /** Rows of a table in the ring, those of all versions. */
  async function rowsOf(job: string): Promise<cassandra.types.Row[]> {
    const rows: cassandra.types.Row[] = [];
    for (let shard = 0; shard < 8; shard++) {
      for (let bucket = 0; bucket < 2; bucket++) {
        const query = `SELECT key, epoch, TTL(value) AS ttl FROM millrace.versions WHERE table_id = ? AND shard = ? AND bucket = ?`;
        const found = await (client as cassandra.Client).execute(query, [`${job}/op`, shard, bucket], {
          prepare: true,
        });
        rows.push(...found.rows);
      }
    }
    return rows;
  }

  function fixture(remote: boolean): OpenStateStore {
    return async (clock) => {
      const settings = readCqlSettings(ring.backendOptions({ buckets: 2 }));
      // The ring is common to all cases: their jobs get names of their own.
      const prefix = `${random.hex(8)}-`;
      const opened: { close(): Promise<void> }[] = [];
      const another = async (): Promise<StateStore> => {
        const store = await openCqlStore({ settings, clock: systemClock, stateClock: clock, random, telemetry });
        const own: StateStore = {
          name: store.name,
          ...(store.retained === undefined ? {} : { retained: store.retained }),
          openTable: (one, restore) => store.openTable({ ...one, job: prefix + one.job }, restore),
          close: () => store.close(),
        };
        const served = remote ? await serveStore(own) : undefined;
        opened.push(served ?? own);
        return served?.client ?? own;
      };
      return {
        store: await another(),
        another,
        generationsInHome: true,
        close: async () => void (await Promise.all(opened.map((one) => one.close()))),
      };
    };
  }

  stateStoreConformance('cql', fixture(false));
  stateStoreConformance('cql over gRPC', fixture(true));

  test('versions that no snapshot needs are removed from the ring, and all rows with the last snapshot', async () => {
    const job = `purge-${random.hex(4)}`;
    const store = await open({ purgeRowsPerSecond: 100_000 });
    const table = await store.openTable(spec(job, 1), []);
    const handles: SnapshotHandle[] = [];
    for (let n = 1; n <= 5; n++) {
      await put(table, 40, `value ${n}`);
      handles.push(await table.snapshot(n));
    }
    expect(await rowsOf(job)).toHaveLength(5 * 40);
    const ids = handles.map((handle) => String(handle.data['snapshot']));
    expect([...((await store.retained?.list(job)) ?? [])].toSorted()).toEqual(ids.toSorted());
    for (const id of ids.slice(0, 3)) await store.retained?.release(job, id);
    await eventually('only rows of two snapshots', 30_000, async () => {
      return (await rowsOf(job)).length === 2 * 40 ? true : undefined;
    });
    // What a dead attempt wrote after the snapshot goes as well.
    await put(table, 40, 'lost');
    await countOf(table);
    await table.close();
    const next = await store.openTable(spec(job, 2), [handles[3] as SnapshotHandle]);
    expect(await get(next, 40)).toEqual(new Set(['value 4']));
    await eventually('no rows of the dead attempt', 30_000, async () => {
      return (await rowsOf(job)).length === 2 * 40 ? true : undefined;
    });
    expect(await get(next, 40)).toEqual(new Set(['value 4']));
    await next.close();
    for (const id of ids.slice(3)) await store.retained?.release(job, id);
    expect(await rowsOf(job)).toEqual([]);
    expect(await store.retained?.jobs()).not.toContain(job);
    await store.close();
  });

  test('the ring itself ends entries with a time to live, and an ended one hides what is beneath', async () => {
    const job = `ttl-${random.hex(4)}`;
    const store = await open({ ttlSlackMs: 0, purgeRowsPerSecond: 1 });
    const table = await store.openTable(spec(job, 1), []);
    await put(table, 8, 'older');
    await table.snapshot(1);
    await put(table, 8, 'newer', systemClock.nowMs() + 2000);
    await table.snapshot(2);
    expect(await get(table, 8)).toEqual(new Set(['newer']));
    const ttls = (await rowsOf(job)).map((row) => row['ttl'] as number | null);
    expect(ttls.filter((ttl) => ttl !== null && ttl > 0 && ttl <= 2)).toHaveLength(8);
    await eventually('the ring has removed the values', 30_000, async () => {
      const query = `SELECT value FROM millrace.versions WHERE table_id = ? AND shard = 1 AND bucket = ? AND key = ?`;
      const found = await Promise.all(
        [0, 1].map((bucket) =>
          (client as cassandra.Client).execute(query, [`${job}/op`, bucket, Buffer.from(key(1))], { prepare: true }),
        ),
      );
      const values = found.flatMap(({ rows }) => rows.map((row) => row['value'] as Buffer | null));
      return values.length === 2 && values[0] === null ? true : undefined;
    });
    expect(await get(table, 8)).toEqual(new Set([undefined]));
    await store.close();
  });

  test('a fork reads its parent after the parent has let go of the snapshot and gone on', async () => {
    const [parent, fork] = [`parent-${random.hex(4)}`, `fork-${random.hex(4)}`];
    const store = await open({ purgeRowsPerSecond: 100_000 });
    const table = await store.openTable(spec(parent, 1), []);
    await put(table, 24, 'before');
    const handle = await table.snapshot(1);
    const forked = await store.openTable(spec(fork, 1), [handle]);
    expect(await rowsOf(fork)).toEqual([]);
    await put(table, 24, 'after');
    const later = await table.snapshot(2);
    await store.retained?.release(parent, String(handle.data['snapshot']));
    await put(forked, 8, 'forked');
    const taken = await forked.snapshot(1);
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(await get(forked, 24)).toEqual(new Set(['forked', 'before']));
    await table.close();
    await store.retained?.release(parent, String(later.data['snapshot']));
    const again = await store.openTable(spec(fork, 2), [taken]);
    expect(await get(again, 24)).toEqual(new Set(['forked', 'before']));
    expect(await countOf(again)).toBe(24);
    await store.close();
  });

  test('what an older attempt in another process writes is never seen, and it is told so at its next snapshot', async () => {
    const job = `zombie-${random.hex(4)}`;
    const [first, second] = [await open(), await open()];
    const zombie = await first.openTable(spec(job, 1), []);
    await put(zombie, 16, 'good');
    const handle = await zombie.snapshot(1);
    const young = await second.openTable(spec(job, 2), [handle]);
    await put(zombie, 16, 'zombie');
    await expect(zombie.snapshot(2)).rejects.toMatchObject({ kind: 'fenced' });
    expect(await get(young, 16)).toEqual(new Set(['good']));
    await expect(first.openTable(spec(job, 1), [handle])).rejects.toMatchObject({ kind: 'fenced' });
    await Promise.all([first.close(), second.close()]);
  });

  test('a job that was erased begins anew under the same name', async () => {
    const job = `again-${random.hex(4)}`;
    const store = await open();
    const table = await store.openTable(spec(job, 1), []);
    await put(table, 16, 'old');
    const handle = await table.snapshot(1);
    await table.close();
    await store.retained?.release(job, String(handle.data['snapshot']));
    const next = await store.openTable(spec(job, 2), []);
    expect(await get(next, 16)).toEqual(new Set([undefined]));
    await put(next, 16, 'new');
    await next.snapshot(1);
    expect(await get(next, 16)).toEqual(new Set(['new']));
    await store.close();
  });

  test('kill -9 of a node: writes, reads, scans, snapshots and restores go on; the driver tells it in metrics', async () => {
    const job = `kill-${random.hex(4)}`;
    const metrics = new MetricsRegistry();
    const settings = readCqlSettings(ring.backendOptions({ buckets: 2 }));
    const clocks = { clock: systemClock, stateClock: systemClock };
    const store = await openCqlStore({ settings, ...clocks, random, telemetry: { ...telemetry, metrics } });
    const table = await store.openTable(spec(job, 1), []);
    await put(table, 200, 'before');
    const working = (async () => {
      for (let n = 1; n <= 60; n++) {
        await put(table, 200, `value ${n}`);
        if (n % 10 === 0) await table.snapshot(n);
        expect(await get(table, 200)).toEqual(new Set([`value ${n}`]));
      }
    })();
    await new Promise((resolve) => setTimeout(resolve, 500));
    await ring.kill(2);
    await working;
    expect(await countOf(table)).toBe(200);
    const handle = await table.snapshot(100);
    const other = await open();
    const restored = await other.openTable(spec(job, 2), [handle]);
    expect(await get(restored, 200)).toEqual(new Set(['value 60']));
    const values = new Map(metrics.collect().map(({ name, samples }) => [name, samples]));
    expect(values.get('millrace_cql_driver_response_seconds')).toBeDefined();
    expect(values.get('millrace_cql_driver_hosts')?.[0]?.value).toBeGreaterThanOrEqual(2);
    await Promise.all([store.close(), other.close()]);
    await ring.up(2);
  });
});
