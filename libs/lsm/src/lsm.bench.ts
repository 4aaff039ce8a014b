/**
 * What the LSM costs on one thread: `node libs/lsm/src/lsm.bench.ts [entries]`, one JSON line a case. Keys of 24 bytes
 * whose first nine are shared, values of 100 bytes of which half compress. Files are in memory, so it measures CPU and
 * no device; flushes run here on the calling thread, in production on another.
 */
import { BlockCache } from '@millrace/cache';
import { SeededRandom, systemClock } from '@millrace/kernel';
import { noTelemetry } from '@millrace/telemetry';
import type { ValueRef } from './answers.ts';
import { inlineExecutor } from './background/inline-executor.ts';
import { defaultLsmLimits } from './limits.ts';
import { LsmTable } from './table/lsm-table.ts';
import { MemoryFileStore } from './testing/memory-file-store.ts';

const entries = Number(process.argv[2] ?? 200_000);
const keyBytes = 24;
const valueBytes = 100;
const random = new SeededRandom(1);
const data = Buffer.alloc(entries * (keyBytes + valueBytes));
for (let i = 0; i < entries; i++) {
  const at = i * (keyBytes + valueBytes);
  data.writeUInt32BE(i % 128, at);
  data.write(random.hex(6), at + 9, 'latin1');
  for (let j = 0; j < valueBytes / 2; j += 4) data.writeUInt32LE(random.nextU32(), at + keyBytes + j);
}
const order = Uint32Array.from({ length: entries }, () => random.below(entries));
/** Keys to ask for, in random order, and beside them as many that do not exist. */
const probes = Buffer.alloc(entries * keyBytes);
const absent = Buffer.alloc(entries * keyBytes);
for (let i = 0; i < entries; i++) {
  const at = (order[i] as number) * (keyBytes + valueBytes);
  data.copy(probes, i * keyBytes, at, at + keyBytes);
  data.copy(absent, i * keyBytes, at, at + keyBytes);
  absent[i * keyBytes + keyBytes - 1] = 1;
}
const into: ValueRef = { bytes: data, start: 0, end: 0 };

function report(name: string, operations: number, startMs: number, cpu: NodeJS.CpuUsage): void {
  const used = process.cpuUsage(cpu);
  const wallNs = ((performance.now() - startMs) / operations) * 1e6;
  const cpuNs = ((used.user + used.system) / operations) * 1e3;
  const perSecond = Math.round(1e9 / wallNs);
  console.log(
    JSON.stringify({ name, operations, nsPerOp: Math.round(wallNs), cpuNsPerOp: Math.round(cpuNs), perSecond }),
  );
}

/** The last of three rounds counts; the others warm up. */
async function measure(name: string, operations: number, work: () => void | Promise<void>): Promise<void> {
  for (let round = 0; round < 3; round++) {
    const start = performance.now();
    const cpu = process.cpuUsage();
    await work();
    if (round === 2) report(name, operations, start, cpu);
  }
}

function open(): LsmTable {
  const files = new MemoryFileStore();
  return new LsmTable({
    files,
    executor: inlineExecutor(files),
    cache: new BlockCache({ bytesMax: 512 * 1024 * 1024 }),
    clock: systemClock,
    telemetry: noTelemetry,
    limits: { ...defaultLsmLimits, memtableBytes: 256 * 1024 * 1024 },
  });
}

function putAt(table: LsmTable, i: number): void {
  const at = i * (keyBytes + valueBytes);
  table.put(data, at, at + keyBytes, at + keyBytes, at + keyBytes + valueBytes, 0);
}

function getAll(table: LsmTable, keys: Buffer, expected: 'found' | 'absent'): void {
  for (let at = 0; at < keys.length; at += keyBytes) {
    if (table.get(keys, at, at + keyBytes, into) !== expected) throw new Error(`the key at ${at} is not ${expected}`);
  }
}

let table = open();
await measure('put, new key', entries, () => {
  table = open();
  for (let i = 0; i < entries; i++) putAt(table, i);
});
await measure('put, overwrite', entries, () => {
  for (let i = 0; i < entries; i++) putAt(table, order[i] as number);
});
await measure('get from memtable', entries, () => getAll(table, probes, 'found'));
await measure('flush, with sort, lz4 and crc', entries, async () => {
  const full = open();
  for (let i = 0; i < entries; i++) putAt(full, i);
  const start = performance.now();
  const cpu = process.cpuUsage();
  await full.snapshot();
  report('flush alone', entries, start, cpu);
  table = full;
});
await table.multiGet(allKeys());
await measure('get from cached blocks', entries, () => getAll(table, probes, 'found'));
await measure('get of an absent key', entries, () => getAll(table, absent, 'absent'));
await measure('multiGet from cached blocks', entries, async () => void (await table.multiGet(allKeys())));
await measure('scan', entries, async () => {
  let count = 0;
  for await (const page of table.scan({ start: new Uint8Array() })) count += page.keys.count;
  if (count !== entries) throw new Error(`${count} entries scanned`);
});
await table.close();

function allKeys() {
  const bytes = Buffer.alloc(entries * keyBytes);
  const offsets = new Uint32Array(entries + 1);
  for (let i = 0; i < entries; i++) {
    const at = i * (keyBytes + valueBytes);
    data.copy(bytes, i * keyBytes, at, at + keyBytes);
    offsets[i + 1] = (i + 1) * keyBytes;
  }
  return { count: entries, bytes, offsets };
}
