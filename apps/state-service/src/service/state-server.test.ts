import type { ServiceError } from '@grpc/grpc-js';
import { systemClock as clock, MillraceError } from '@millrace/kernel';
import {
  bidiClient,
  errorFromWire,
  fromStatus,
  Health,
  messageCodec,
  ServingStatus,
  StateService,
  type TableResponse,
  TableResponseSchema,
  unaryClient,
  type WireCodec,
} from '@millrace/proto';
import { MemoryStateStore, packKeys, type StateTable } from '@millrace/state';
import { forSeeds, slowStore } from '@millrace/state/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { type GatedStore, gatedStore } from '../testing/gated-store.ts';
import { type ServedStore, type ServedStoreOptions, serveStore } from '../testing/served-store.ts';
import { batchOf, keyOf, readText, scanText, specOf } from '../testing/table-driver.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

interface Gated extends ServedStore {
  readonly store: GatedStore;
  readonly table: StateTable;
}

async function gated(options: ServedStoreOptions = {}): Promise<Gated> {
  const store = gatedStore(new MemoryStateStore(clock));
  const served = await serveStore(store, options);
  closers.push(() => served.close());
  const table = await served.client.openTable(specOf(), []);
  return { ...served, store, table };
}

const megabyte = 'x'.repeat(1 << 20);
const kilobyte = Buffer.alloc(1024, 'x');

describe('a slow store', () => {
  it('holds the writer back, and bounds what waits in its memory', async () => {
    const windowBytes = 64 * 1024;
    const { store, table } = await gated({ client: { windowBytes } });
    store.hold('write');
    let writes = 0;
    let waiting: Promise<void> | undefined;
    for (; waiting === undefined && writes < 1000; writes++) {
      const written = table.write(batchOf({ [`key ${writes}`]: kilobyte }));
      if (written instanceof Promise) waiting = written;
    }
    expect(writes).toBeGreaterThan(30);
    expect(writes).toBeLessThan(64);
    let resumed = false;
    void waiting?.then(() => (resumed = true));
    await expect.poll(() => store.calls.filter((call) => call === 'write').length).toBe(writes - 1);
    expect(resumed).toBe(false);
    store.release();
    await waiting;
    expect(Object.keys(await scanText(table))).toHaveLength(writes);
  });

  it('refuses a writer that does not heed it, before memory grows', async () => {
    const queueBytesMax = 256 * 1024;
    const { store, table } = await gated({ client: { windowBytes: 64 * 1024, queueBytesMax } });
    store.hold('write');
    const failures: unknown[] = [];
    for (let i = 0; i < 1000; i++) {
      const written = table.write(batchOf({ [`key ${i}`]: kilobyte }));
      if (written instanceof Promise) written.catch((error: unknown) => failures.push(error));
    }
    await expect.poll(() => failures.length).toBeGreaterThan(600);
    expect(failures[0]).toMatchObject({ code: 'state-remote-overrun' });
    store.release();
  });

  it('is not given more by a client that has no window: the stream is not read', async () => {
    const { store, table } = await gated({
      client: { windowBytes: 1 << 30 },
      server: { streamBytesMax: 64 * 1024 },
    });
    store.hold('write');
    for (let i = 0; i < 500; i++) void table.write(batchOf({ [`key ${i}`]: kilobyte }));
    // Node hands over what it has already read: at most sixteen messages.
    await expect.poll(() => store.calls.length).toBeGreaterThan(50);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(store.calls.length).toBeLessThan(100);
    store.release();
    expect(Object.keys(await scanText(table))).toHaveLength(500);
  });
});

describe('large state', () => {
  it('comes in parts: batches, values and pages of several megabytes', async () => {
    const { store, table } = await gated();
    await table.write(batchOf({ a: megabyte, b: megabyte, c: 'C', d: megabyte, e: 'E' }));
    expect(await readText(table, 'e', 'd', 'x', 'c', 'b', 'a')).toEqual([
      'E',
      megabyte,
      undefined,
      'C',
      megabyte,
      megabyte,
    ]);
    expect(Object.keys(await scanText(table))).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(store.calls.filter((call) => call === 'write')).toHaveLength(5);
  });

  it('that fits no message is refused by name, and the table goes on', async () => {
    const { table } = await gated();
    await expect(table.write(batchOf({ a: new Uint8Array(33 << 20) }))).rejects.toMatchObject({
      code: 'rpc-too-large',
    });
    await table.write(batchOf({ a: 'A' }));
    expect(await readText(table, 'a')).toEqual(['A']);
  });
});

describe('a failure', () => {
  it('of a write fails every later call, the snapshot that was already under way first', async () => {
    const { store, table } = await gated();
    store.hold('write');
    await table.write(batchOf({ a: 'A' }));
    const snapshot = table.snapshot(1);
    await expect.poll(() => store.calls).toContain('snapshot');
    store.release(new Error('disk full'));
    await expect(snapshot).rejects.toThrow('disk full');
    await expect(table.multiGet(packKeys([keyOf('a')]))).rejects.toThrow('disk full');
    await expect((async () => table.write(batchOf({ b: 'B' })))()).rejects.toThrow('disk full');
    await expect(table.snapshot(2)).rejects.toThrow('disk full');
  });

  it('of a write that might pass elsewhere loses the table: the attempt has to restart', async () => {
    const { store, table } = await gated();
    store.hold('write');
    await table.write(batchOf({ a: 'A' }));
    const snapshot = table.snapshot(1);
    await expect.poll(() => store.calls).toContain('snapshot');
    store.release(new MillraceError('dfs-unavailable', 'no answer'));
    await expect(snapshot).rejects.toMatchObject({ code: 'state-remote-broken', kind: 'retry' });
    await expect(table.snapshot(2)).rejects.toMatchObject({ code: 'state-remote-broken' });
  });

  it('of the service breaks its tables with kind retry, pending calls and later ones', async () => {
    const { store, table, server } = await gated();
    store.hold('multiGet');
    const read = readText(table, 'a');
    read.catch(() => undefined);
    await expect.poll(() => store.calls).toContain('multiGet');
    await server.close(0);
    const broken = { code: 'state-remote-broken', kind: 'retry' };
    await expect(read).rejects.toMatchObject(broken);
    await expect((async () => table.write(batchOf({ a: 'A' })))()).rejects.toMatchObject(broken);
    await expect(table.snapshot(1)).rejects.toMatchObject(broken);
    expect(() => table.scan({ start: new Uint8Array() })).toThrow(/is lost/);
    await table.close();
  });

  it('to answer in time is one of the table', async () => {
    const { store, table } = await gated({ client: { requestTimeoutMs: 100 } });
    store.hold('multiGet');
    await expect(readText(table, 'a')).rejects.toMatchObject({
      code: 'state-remote-broken',
      details: { reason: 'rpc-deadline' },
    });
    await expect(table.snapshot(1)).rejects.toMatchObject({ code: 'state-remote-broken' });
    await expect.poll(() => store.open).toBe(0);
  });

  it('to reach the service at all is of kind retry', async () => {
    const { client, server } = await gated();
    await server.close(0);
    await expect(client.openTable(specOf(), [])).rejects.toMatchObject({ code: 'state-remote-broken', kind: 'retry' });
  });

  it('to open says why, as the store said it', async () => {
    const { client, store } = await gated();
    await expect(client.openTable(specOf({ generation: 0 }), [])).rejects.toMatchObject({ code: 'state-fenced' });
    await expect(client.openTable(specOf({ subtask: -1 }), [])).rejects.toMatchObject({ code: 'bad-argument' });
    expect(store.open).toBe(1);
  });
});

describe('a table', () => {
  it('is closed at the service when its client closes it, or its store', async () => {
    const { client, store, table } = await gated();
    await client.openTable(specOf({ operator: 'other' }), []);
    expect(store.open).toBe(2);
    await table.close();
    expect(store.open).toBe(1);
    await client.close();
    await expect.poll(() => store.open).toBe(0);
  });

  it('beyond the limit is refused, and admitted when another has gone', async () => {
    const { client, table } = await gated({ server: { tablesMax: 1 } });
    const other = specOf({ operator: 'other' });
    await expect(client.openTable(other, [])).rejects.toMatchObject({ code: 'state-service-full', kind: 'retry' });
    await table.close();
    await (await client.openTable(other, [])).close();
  });

  it('has a limit of open scans, which a finished or left scan does not count towards', async () => {
    const { table } = await gated({ server: { scansMax: 2 } });
    await table.write(batchOf({ a: 'A', b: 'B', c: 'C' }));
    const page = { start: new Uint8Array(), pageEntriesMax: 1 };
    for (let i = 0; i < 5; i++) {
      for await (const _ of table.scan(page)) break;
      expect(Object.keys(await scanText(table))).toHaveLength(3);
    }
    const scans = [table.scan(page), table.scan(page), table.scan(page)];
    const third = (async () => {
      for await (const _ of scans[2] as (typeof scans)[0]) break;
    })();
    await expect(third).rejects.toMatchObject({ code: 'state-service-full' });
  });
});

describe('the service', () => {
  it('that stops answers what is under way, takes no new table and says so to health checks', async () => {
    const { store, table, server, client, address } = await gated();
    const health = unaryClient(Health, address);
    const check = async (): Promise<ServingStatus> => (await health.call.check({}, { timeoutMs: 2000 })).status;
    expect(await check()).toBe(ServingStatus.SERVING);
    store.hold('snapshot');
    await table.write(batchOf({ a: 'A' }));
    const snapshot = table.snapshot(1);
    await expect.poll(() => store.calls).toContain('snapshot');
    const stopping = server.close(5000);
    expect(await check()).toBe(ServingStatus.NOT_SERVING);
    const refused = client.openTable(specOf({ operator: 'other' }), []);
    await expect(refused).rejects.toMatchObject({ code: 'state-service-stopping', kind: 'retry' });
    store.release();
    await stopping;
    expect((await snapshot).operator).toBe('operator');
    await expect(table.snapshot(2)).rejects.toMatchObject({ code: 'state-remote-broken' });
    health.close();
  });
});

describe('a stream that is none of ours', () => {
  const spec = JSON.stringify(specOf({ operator: 'raw' }));

  it.each([
    ['says nothing', 'rpc-deadline', []],
    ['does not begin with open', 'bad-argument', [{ sequence: 0, kind: { case: 'stats', value: {} } }]],
    ['leaves out a request', 'bad-argument', [{ sequence: 1, kind: { case: 'open', value: { spec } } }]],
    ['opens no table', 'bad-argument', [{ sequence: 0, kind: { case: 'open', value: { spec: '{' } } }]],
  ] as const)('and %s is told so', async (_what, code, messages) => {
    const { address, store } = await gated({ server: { openTimeoutMs: 500 } });
    const codec = messageCodec(TableResponseSchema) as WireCodec<TableResponse>;
    const client = bidiClient(StateService.method.table, codec, address);
    const stream = client.open();
    const told = new Promise<string>((resolve) => {
      stream.on('error', (error: ServiceError) => resolve(fromStatus(error).code));
      stream.on('data', ({ kind }: TableResponse) => {
        if (kind.case === 'error') resolve(errorFromWire(kind.value).code);
      });
    });
    for (const message of messages) stream.write(message);
    expect(await told).toBe(code);
    expect(store.open).toBe(1);
    client.close();
  });
});

it('answers that overtake each other keep the order of calls', async () => {
  await forSeeds(5, async (random) => {
    const served = await serveStore(slowStore(new MemoryStateStore(clock), random), { client: { windowBytes: 2048 } });
    try {
      const table = await served.client.openTable(specOf(), []);
      const model = new Map<string, string>();
      const expected: unknown[] = [];
      const found: Promise<unknown>[] = [];
      for (let step = 0; step < 150; step++) {
        const key = `k${random.below(8)}`;
        if (random.below(2) === 0) {
          const value = `${step}`.repeat(1 + random.below(100));
          model.set(key, value);
          const room = table.write(batchOf({ [key]: value }));
          if (random.below(2) === 0) await room;
        } else if (random.below(5) > 0) {
          expected.push([model.get(key)]);
          found.push(readText(table, key));
        } else {
          expected.push(Object.fromEntries(model));
          found.push(scanText(table));
        }
      }
      expect(await Promise.all(found)).toEqual(expected);
    } finally {
      await served.close();
    }
  });
});
