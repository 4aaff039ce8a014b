import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDfs } from '@millrace/dfs';
import wordcountJob from '@millrace/examples/wordcount/job';
import { systemClock as clock, systemRandom as random } from '@millrace/kernel';
import { defaultLsmLimits, WorkerExecutor } from '@millrace/lsm';
import { openLsmStore } from '@millrace/state-lsm';
import { buildGraph } from '@millrace/streams';
import { LocalCluster } from '@millrace/streams/testing';
import { noTelemetry } from '@millrace/telemetry';
import { openJobStorage } from '@millrace/ufs';
import { median, printResult } from './result.ts';

export interface SlotBenchOptions {
  readonly json: boolean;
  readonly keys: readonly number[];
  readonly seconds: number;
  readonly repeats: number;
  readonly readBoth: boolean;
  readonly checkpointIntervalMs: number;
}

const mib = 1024 * 1024;

/**
 * The job of `wordcount` in one slot on this very thread, state in the LSM on a local directory: what the slot itself can
 * do, without Temporal, processes and message ports. For profiles: `node --cpu-prof tools/bench/src/main.ts slot`.
 */
export async function slot(options: SlotBenchOptions): Promise<void> {
  for (const keys of options.keys) {
    const runs: Measured[] = [];
    for (let i = 0; i < options.repeats; i++) runs.push(await measure(options, keys));
    const figures = [
      { value: median(runs.map((run) => run.recordsPerSecond)), unit: 'records/s' },
      { value: median(runs.map((run) => run.threadUs)), unit: 'µs CPU of the slot a record' },
      { value: median(runs.map((run) => run.processUs)), unit: 'µs CPU of the process a record' },
    ];
    for (const figure of figures) {
      printResult({ bench: 'slot', case: `wordcount keys=${keys}`, ...figure, runs: runs.length }, options.json);
    }
  }
}

interface Measured {
  readonly recordsPerSecond: number;
  /** CPU time of the slot's thread, and of all threads (garbage collector, table builder), for each record. */
  readonly threadUs: number;
  readonly processUs: number;
}

function cpuUs(usage: NodeJS.CpuUsage): number {
  return usage.user + usage.system;
}

async function measure(options: SlotBenchOptions, keys: number): Promise<Measured> {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-slot-'));
  const telemetry = noTelemetry;
  const dfs = await openDfs(directory, { clock, random, telemetry });
  const storage = openJobStorage({ dfs, jobId: 'bench', generation: 1, clock, random, telemetry });
  const specifier = new URL('../../../apps/task-runner/src/slots/background-files.ts', import.meta.url).href;
  const store = openLsmStore({
    files: storage.files,
    holders: storage.holders,
    namespace: storage.namespace,
    executor: new WorkerExecutor({
      files: { specifier, config: { dfs: directory, jobId: 'bench', generation: 1 } },
      clock,
      closeTimeoutMs: 1000,
    }),
    cacheBytes: 512 * mib,
    limits: { ...defaultLsmLimits, memtableBytes: 64 * mib },
    clock,
    telemetry,
  });
  const graph = buildGraph(wordcountJob, { keys, records: 0, fill: true, readBoth: options.readBoth });
  const settings = { inFlightLimit: 6000, workingSetBytes: 512 * mib };
  const cluster = await LocalCluster.start({ graph: () => graph, store, parallelism: 1, settings });
  cluster.done.catch(() => undefined);
  const read = (): number => cluster.slots[0]?.stats().recordsIn ?? 0;
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
  while (read() < keys) await sleep(100);
  const thread = process.threadCpuUsage();
  const all = process.cpuUsage();
  const start = { records: read(), atMs: performance.now() };
  const endMs = start.atMs + options.seconds * 1000;
  while (performance.now() < endMs) {
    await sleep(Math.min(options.checkpointIntervalMs, endMs - performance.now()));
    await cluster.complete(await cluster.checkpoint());
  }
  const records = read() - start.records;
  const measured = {
    recordsPerSecond: (records * 1000) / (performance.now() - start.atMs),
    threadUs: cpuUs(process.threadCpuUsage(thread)) / records,
    processUs: cpuUs(process.cpuUsage(all)) / records,
  };
  await cluster.kill();
  await store.close();
  await storage.close();
  await dfs.close();
  rmSync(directory, { recursive: true, force: true });
  return measured;
}
