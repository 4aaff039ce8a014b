/**
 * The way of state to a state-service and back: a state-service process with shards (`kv`), and in this process what a slot
 * has in front of it. Each case against its naive variant in the same run: one request for each write and read.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { systemClock as clock, isPending, SeededRandom } from '@millrace/kernel';
import {
  type AccessScope,
  int64,
  type KeyedState,
  openKeyedState,
  type StateStore,
  type StateTable,
  value,
  WorkingSet,
} from '@millrace/state';
import { openRemoteStore } from '@millrace/state-remote';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import { cpuSeconds } from './cpu.ts';
import { printResult } from './result.ts';

const mib = 1024 * 1024;
const shape = { count: value(int64) };
type Counting = KeyedState<typeof shape>;

const always: AccessScope = { open: true, enter: () => undefined, leave: () => undefined };

/** What a slot has in front of the store. */
interface Front {
  readonly bytesMax: number;
  readonly cacheBytesMax: number;
  readonly existenceBytesMax: number;
  /** Changes gather until there are so many. */
  readonly changesMax: number;
}

const whole: Front = { bytesMax: mib, cacheBytesMax: 64 * mib, existenceBytesMax: 64 * mib, changesMax: 8192 };
const naive: Front = { bytesMax: 1, cacheBytesMax: 0, existenceBytesMax: 0, changesMax: 1 };

interface Asked {
  reads: number;
  readRequests: number;
  writeRequests: number;
}

interface Bench {
  readonly service: ChildProcess;
  readonly store: StateStore;
  readonly json: boolean;
  tables: number;
}

interface Measured extends Asked {
  readonly operations: number;
  readonly seconds: number;
  /** Of both processes. */
  readonly cpuSeconds: number;
  readonly rpcBytes: number;
  readonly absentUnasked: number;
}

export async function kvPath({ json }: { readonly json: boolean }): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-kv-path-'));
  const service = await startService(directory);
  const store = openRemoteStore({ address: service.address, clock, telemetry });
  const bench: Bench = { service: service.process, store, json, tables: 0 };
  try {
    await writes(bench);
    await absentReads(bench);
    await hotKeys(bench);
  } finally {
    await store.close();
    service.process.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Counters of keys of which some come often. */
async function writes(bench: Bench): Promise<void> {
  const random = new SeededRandom(1);
  const keys = (count: number): number[] =>
    Array.from({ length: count }, () => Math.floor(20_000 * random.float() ** 3));
  const batched = await measured(bench, whole, keys(100_000));
  const single = await measured(bench, naive, keys(2000));
  const perUpdate = (one: Measured): number => one.writeRequests / (one.operations / 2);
  const report = (name: string, unit: string, of: (one: Measured) => number): void => {
    const against = `one request each, which is ${of(single).toFixed(0)}`;
    result(bench, name, { value: of(batched), unit, baseline: against, ratio: of(batched) / of(single) });
  };
  report('write requests for 1,000 updates', 'requests', (one) => 1000 * perUpdate(one));
  report('updates', 'updates/s', (one) => one.operations / 2 / one.seconds);
  report('RPC bytes of an operation', 'bytes', (one) => one.rpcBytes / one.operations);
  report('CPU of an operation, both processes', 'µs', (one) => (1e6 * one.cpuSeconds) / one.operations);
}

/** Deduplication: every key is new. */
async function absentReads(bench: Bench): Promise<void> {
  const fresh = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
  const filtered = await measured(bench, whole, fresh(50_000));
  const asking = await measured(bench, { ...whole, existenceBytesMax: 0 }, fresh(10_000));
  const share = (one: Measured): number => (100 * (one.operations / 2 - one.reads)) / (one.operations / 2);
  result(bench, 'reads of nothing that asked nobody', {
    value: share(filtered),
    unit: '%',
    baseline: 'without filter',
  });
  result(bench, 'new keys', {
    value: filtered.operations / 2 / filtered.seconds,
    unit: 'keys/s',
    baseline: 'without filter',
    ratio: filtered.operations / filtered.seconds / (asking.operations / asking.seconds),
  });
}

/** A few keys again and again: what is at hand is not asked for. */
async function hotKeys(bench: Bench): Promise<void> {
  const hot = (count: number): number[] => Array.from({ length: count }, (_, i) => (i * 7919) % 1000);
  const atHand = await measured(bench, whole, hot(1_000_000));
  const asking = await measured(bench, naive, hot(2000));
  const rate = (one: Measured): number => one.operations / one.seconds;
  result(bench, 'state operations on hot keys', {
    value: rate(atHand),
    unit: 'ops/s',
    baseline: 'one request each',
    ratio: rate(atHand) / rate(asking),
  });
  const cpu = (one: Measured): number => (1e6 * one.cpuSeconds) / one.operations;
  result(bench, 'CPU of one of them', {
    value: cpu(atHand),
    unit: 'µs',
    baseline: 'one request each',
    ratio: cpu(atHand) / cpu(asking),
  });
}

/** Reads the counter of each key and writes it back, two operations; keys that wait do so together. */
async function measured(bench: Bench, front: Front, keys: readonly number[]): Promise<Measured> {
  const asked: Asked = { reads: 0, readRequests: 0, writeRequests: 0 };
  const keyGroups = { start: 0, end: 127 };
  const spec = {
    job: 'bench',
    operator: `t${bench.tables++}`,
    subtask: 0,
    keyGroups,
    maxParallelism: 128,
    generation: 1,
  };
  const table = counted(await bench.store.openTable(spec, []), asked);
  const workingSet = new WorkingSet({ ...front, clock });
  const state = await openKeyedState({
    table,
    restored: false,
    shape,
    workingSet,
    clock,
    changesMax: front.changesMax,
  });
  Object.assign(asked, { reads: 0, readRequests: 0, writeRequests: 0 });
  const before = { ms: clock.monotonicMs(), cpu: cpuOf(bench), bytes: ioBytes() };
  await countAll(state, keys);
  await state.flush();
  // Everything has arrived, not only been sent.
  await state.snapshot(1);
  const seconds = (clock.monotonicMs() - before.ms) / 1000;
  const figures = {
    ...asked,
    operations: 2 * keys.length,
    seconds,
    cpuSeconds: cpuOf(bench) - before.cpu,
    rpcBytes: ioBytes() - before.bytes,
    absentUnasked: workingSet.existence.stats.absent,
  };
  await state.close();
  return figures;
}

const inFlightMax = 1024;

async function countAll(state: Counting, keys: readonly number[]): Promise<void> {
  const busy = new Map<number, Promise<void>>();
  for (const [i, key] of keys.entries()) {
    // As a slot does between batches: connections are served.
    if (i % 4096 === 4095) await new Promise(setImmediate);
    const room = state.room();
    if (room !== undefined) await room;
    const before = busy.get(key);
    if (before !== undefined) await before;
    const counting = count(state, key);
    if (counting === undefined) continue;
    const done = counting.finally(() => busy.delete(key));
    busy.set(key, done);
    if (busy.size >= inFlightMax) await busy.values().next().value;
  }
  await Promise.all(busy.values());
}

/** Nothing when the value was at hand. */
function count(state: Counting, key: number): Promise<void> | undefined {
  const entry = state.enter(key);
  const { count: counter } = state.facade(entry, always);
  const old = counter.get();
  if (!isPending(old)) {
    counter.set((old ?? 0) + 1);
    state.leave(entry);
    return undefined;
  }
  return old.then((number) => {
    counter.set((number ?? 0) + 1);
    state.leave(entry);
  });
}

function counted(table: StateTable, asked: Asked): StateTable {
  return {
    spec: table.spec,
    peek: (...all) => table.peek(...all),
    multiGet: (keys) => {
      asked.reads += keys.count;
      asked.readRequests++;
      return table.multiGet(keys);
    },
    write: (batch) => {
      asked.writeRequests++;
      return table.write(batch);
    },
    scan: (range) => table.scan(range),
    snapshot: (checkpoint) => table.snapshot(checkpoint),
    stats: () => table.stats(),
    close: () => table.close(),
  };
}

interface Figure {
  readonly value: number;
  readonly unit: string;
  readonly baseline: string;
  readonly ratio?: number;
}

function result({ json }: Bench, name: string, figure: Figure): void {
  printResult({ bench: 'kv-path', case: name, ...figure }, json);
}

function cpuOf({ service }: Bench): number {
  return cpuSeconds(process.pid) + cpuSeconds(service.pid as number);
}

/** Bytes that this process has read and written, sockets included; 0 where /proc does not tell. */
function ioBytes(): number {
  try {
    const text = readFileSync('/proc/self/io', 'utf8');
    return [...text.matchAll(/^[rw]char: (\d+)/gm)].reduce((sum, [, bytes]) => sum + Number(bytes), 0);
  } catch {
    return 0;
  }
}

async function startService(directory: string): Promise<{ readonly process: ChildProcess; readonly address: string }> {
  const main = resolve(import.meta.dirname, '../../../apps/state-service/src/main.ts');
  const flags = ['--backend', 'kv', '--port', '0', '--state', join(directory, 'dfs'), '--directory', directory];
  const child = spawn(process.execPath, [main, ...flags], { stdio: ['ignore', 'pipe', 'inherit'] });
  const line = await new Promise<string>((done, fail) => {
    let text = '';
    child.once('exit', (code) => fail(new Error(`the state-service ended with code ${code}: ${text}`)));
    child.stdout.on('data', (bytes: Buffer) => {
      text += bytes.toString();
      if (text.includes('\n')) done(text);
    });
  });
  return { process: child, address: (JSON.parse(line) as { readonly address: string }).address };
}
