/** Records traces: a job in one slot of this process, its tables in the LSM with little memory, so that they are read from files. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDfs } from '@millrace/dfs';
import nexmarkJob from '@millrace/examples/nexmark/q18';
import wordcountJob from '@millrace/examples/wordcount/job';
import { systemClock as clock, systemRandom as random } from '@millrace/kernel';
import { defaultLsmLimits, inlineExecutor } from '@millrace/lsm';
import { openLsmStore } from '@millrace/state-lsm';
import { buildGraph, type JobGraph } from '@millrace/streams';
import { LocalCluster } from '@millrace/streams/testing';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import { openJobStorage } from '@millrace/ufs';
import type { Trace } from './trace.ts';
import { TraceRecorder } from './trace-recorder.ts';

const mib = 1024 * 1024;

/** Each job at a pace that its slot keeps up with, checkpoints every two seconds. */
export async function recordTraces(seconds: number): Promise<readonly Trace[]> {
  const wordcount = { keys: 60_000, records: 0, payloadBytes: 500, fill: true, recordsPerSecond: 6000 };
  return [
    await record('wordcount', () => buildGraph(wordcountJob, { ...wordcount, readBoth: true }), seconds),
    await record(
      'nexmark-q18',
      (output) => buildGraph(nexmarkJob, { output, events: 0, recordsPerSecond: 12_000, eventsPerSecond: 20_000 }),
      seconds,
    ),
  ];
}

async function record(name: string, graphOf: (output: string) => JobGraph, seconds: number): Promise<Trace> {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-trace-'));
  const dfs = await openDfs(`${new URL(`file://${directory}/state`).href}?fsync=false`, { clock, random, telemetry });
  const recorder = new TraceRecorder(clock);
  const common = { dfs, jobId: 'trace', generation: 1, clock, random, telemetry };
  const storage = openJobStorage({ ...common, cache: recorder });
  // What compactions read tells nothing of what will be read again; what they and flushes write does.
  const writes = { ...silent, create: () => recorder.create(), forget: recorder.forget.bind(recorder) };
  const built = openJobStorage({ ...common, cache: writes });
  const store = openLsmStore({
    files: storage.files,
    holders: storage.holders,
    namespace: storage.namespace,
    executor: inlineExecutor(built.files),
    cacheBytes: 2 * mib,
    limits: { ...defaultLsmLimits, memtableBytes: mib, tables: { ...defaultLsmLimits.tables, tableBytesMax: mib } },
    clock,
    telemetry,
  });
  const graph = graphOf(join(directory, 'out'));
  const settings = { inFlightLimit: 1000, workingSetBytes: mib };
  const cluster = await LocalCluster.start({ graph: () => graph, store, parallelism: 1, settings });
  cluster.done.catch(() => undefined);
  const endMs = performance.now() + seconds * 1000;
  while (performance.now() < endMs) {
    await new Promise((resolve) => setTimeout(resolve, 2000));
    await cluster.complete(await cluster.checkpoint());
  }
  await cluster.kill();
  await store.close();
  recorder.close();
  await built.close();
  await storage.close();
  await dfs.close();
  rmSync(directory, { recursive: true, force: true });
  return { name, events: recorder.events };
}

const silent = {
  open: () => ({ read: () => Promise.resolve(undefined) }),
  close: () => undefined,
};
