/**
 * Entry of a slot's worker thread and composition root of a slot: loads the job, opens its stores and channels, runs it, and
 * answers the main thread. The thread ends by itself when the slot has finished, failed or was cancelled; the last message
 * says which.
 */
import { pathToFileURL } from 'node:url';
import { type MessagePort, parentPort } from 'node:worker_threads';
import { openDfs } from '@millrace/dfs';
import {
  assert,
  systemClock as clock,
  errorFromJson,
  errorToJson,
  keyGroupRange,
  systemRandom as random,
} from '@millrace/kernel';
import {
  type BackgroundExecutor,
  defaultLsmLimits,
  type MergeService,
  RemoteExecutor,
  type TableInfoJson,
  WorkerExecutor,
} from '@millrace/lsm';
import type { Json } from '@millrace/proto/control';
import { MemoryStateStore, meteredStore, type StateStore } from '@millrace/state';
import { openLsmStore } from '@millrace/state-lsm';
import { buildGraph, createSlot, type InFlightFiles, type JobGraph, loadJob, type Slot } from '@millrace/streams';
import { type RunningTelemetry, startTelemetry, type Telemetry } from '@millrace/telemetry';
import { type JobStorage, openJobStorage } from '@millrace/ufs';
import { CompactionCaller } from '../compaction/compaction-caller.ts';
import { openThreadCache } from '../disk-cache/compose.ts';
// Not from the index: a slot's thread needs no gRPC, which takes long to load.
import { PortTransport } from '../exchange/port-transport.ts';
import type { BackgroundFilesConfig } from './background-files.ts';
import { inFlightFiles } from './in-flight-files.ts';
import { memtableBytes } from './slot-budget.ts';
import type { SlotDeployment, SlotReport, SlotRequest } from './slot-protocol.ts';

/** How often figures go to the main thread. The end of the inputs is noticed at the same pace. */
const statsIntervalMs = 100;
const metricsIntervalMs = 1000;
const executorCloseTimeoutMs = 1000;

const port = parentPort as MessagePort;
assert(port !== null, 'a slot thread runs as a worker');
/** What comes before there is a slot waits for it. */
const early: SlotRequest[] = [];
let take = (request: SlotRequest): void => void early.push(request);
/** The code is loaded by now: a thread may be started, and wait here, before anyone knows what it is to run. */
const deployment = await new Promise<SlotDeployment>((resolve) => {
  port.on('message', (request: SlotRequest) => {
    if (request.kind === 'deploy') resolve(request.deployment);
    else take(request);
  });
});

function report(message: SlotReport): void {
  port.postMessage(message);
}

interface Opened {
  readonly slot: Slot;
  close(): Promise<void>;
}

interface OpenStore {
  readonly store: StateStore;
  readonly inFlightFiles?: InFlightFiles;
  /** Closes the store and what is beneath it. */
  close(): Promise<void>;
}

/** The files of the thread that builds tables: it opens its own file system. */
function backgroundFiles(): { specifier: string; config: BackgroundFilesConfig } {
  const { dfs, id: jobId, generation, diskCache } = deployment;
  const specifier = new URL('./background-files.ts', import.meta.url).href;
  return { specifier, config: { dfs, jobId, generation, diskCache } };
}

async function openFiles(telemetry: Telemetry): Promise<{ storage: JobStorage; readonly close: () => Promise<void> }> {
  const common = { clock, random, telemetry };
  const dfs = await openDfs(deployment.dfs, { ...common, setting: 'state' });
  const { id: jobId, generation, diskCache } = deployment;
  const cache = openThreadCache(diskCache, false);
  const storage = openJobStorage({ dfs, jobId, generation, cache, ...common });
  return {
    storage,
    close: async () => {
      await storage.close();
      cache?.close();
      await dfs.close();
    },
  };
}

/** Tables are built on a thread of the slot; what can be done elsewhere is, when the job wants it so. */
function openExecutor({ files }: JobStorage, telemetry: Telemetry): BackgroundExecutor {
  const local = new WorkerExecutor({ files: backgroundFiles(), clock, closeTimeoutMs: executorCloseTimeoutMs });
  if (deployment.compactions === undefined) return local;
  const caller = new CompactionCaller(deployment.compactions);
  const { id, generation } = deployment;
  const service: MergeService = {
    merge: async ({ merge, output, timeoutMs, parent }, signal) => {
      const traced = parent === undefined ? {} : { traceparent: parent };
      const task = { id, generation, output, merge: merge as unknown as Json, ...traced };
      const { tables, attempt } = await caller.compact(task, timeoutMs, signal);
      return { tables: tables as unknown as readonly TableInfoJson[], attempts: attempt };
    },
    close: () => caller.close(),
  };
  return new RemoteExecutor({ service, local, files, clock, telemetry });
}

async function openStore(graph: JobGraph, telemetry: Telemetry): Promise<OpenStore> {
  if (deployment.backend === 'memory') {
    const store = new MemoryStateStore(clock);
    return { store, close: () => store.close() };
  }
  if (deployment.backend === 'remote') {
    const services = deployment.stateService;
    assert(services !== undefined, 'the backend remote has a service');
    // Loaded only here: gRPC takes long to load.
    const { openServiceStore } = await import('./state-service/compose.ts');
    const store = openServiceStore({ services, clock, telemetry });
    const { storage, close } = await openFiles(telemetry);
    return {
      store,
      inFlightFiles: inFlightFiles(storage, deployment.generation),
      close: async () => {
        await store.close();
        await close();
      },
    };
  }
  const { generation, budget } = deployment;
  const { storage, close } = await openFiles(telemetry);
  const { files, holders, namespace } = storage;
  const tables = Math.max(1, graph.operators.filter((node) => node.stateful).length);
  const store = openLsmStore({
    files,
    holders,
    namespace,
    executor: openExecutor(storage, telemetry),
    cacheBytes: budget.blockCacheBytes,
    limits: { ...defaultLsmLimits, memtableBytes: memtableBytes(budget, tables, defaultLsmLimits.frozenMax) },
    clock,
    telemetry,
  });
  return {
    store,
    inFlightFiles: inFlightFiles(storage, generation),
    close: async () => {
      await store.close();
      await close();
    },
  };
}

async function build(transport: PortTransport, telemetry: Telemetry): Promise<Opened> {
  const { module, options, id, generation, lineage, subtask, parallelism, maxParallelism, restore } = deployment;
  const loaded: unknown = await import(pathToFileURL(module).href);
  const graph = buildGraph(loadJob(loaded, module), options);
  const opened = await openStore(graph, telemetry);
  const slot = createSlot(graph, {
    job: id,
    generation,
    lineage,
    subtask,
    parallelism,
    maxParallelism,
    keyGroups: keyGroupRange(subtask, parallelism, maxParallelism),
    settings: deployment.slot,
    store: meteredStore(opened.store, { clock, telemetry }),
    transport,
    inFlightFiles: opened.inFlightFiles,
    clock,
    random,
    telemetry,
    restore,
    allowDroppedState: deployment.allowDroppedState,
  });
  return { slot, close: () => opened.close() };
}

/** Requests that came while the slot was being built wait for it. */
function serve(built: Promise<Opened>): void {
  take = (request) => {
    built.then(
      ({ slot }) => handle(slot, request),
      () => undefined, // the failure is reported once, by `run`
    );
  };
  for (const request of early.splice(0)) take(request);
}

function handle(slot: Slot, request: SlotRequest): void {
  switch (request.kind) {
    case 'deploy':
      return;
    case 'checkpoint': {
      const { id, checkpoint, parent, overtakeAfterMs, stop } = request;
      slot.checkpoint({ checkpoint, parent, overtakeAfterMs, stop }).then(
        (snapshot) => report({ kind: 'snapshot', id, snapshot }),
        (error: unknown) => report({ kind: 'refused', id, error: errorToJson(error) }),
      );
      return;
    }
    case 'complete': {
      const { id, checkpoint, last } = request;
      slot.complete(checkpoint, last).then(
        () => report({ kind: 'completed', id }),
        (error: unknown) => report({ kind: 'refused', id, error: errorToJson(error) }),
      );
      return;
    }
    case 'end-inputs':
      return slot.endInputs();
    case 'abort':
      return slot.abort(request.checkpoint);
    case 'cancel':
      // Its end is reported by `run`.
      void slot.cancel(errorFromJson(request.error));
  }
}

/** Reports figures until the result is called, and once more then. */
function reportFigures(slot: Slot, running: RunningTelemetry): () => void {
  const stats = (): void => report({ kind: 'stats', stats: slot.stats() });
  const metrics = (): void => report({ kind: 'metrics', families: running.metrics.collect() });
  // At once, for somebody may wait until the slot is there.
  stats();
  const timers = [setInterval(stats, statsIntervalMs), setInterval(metrics, metricsIntervalMs)];
  return () => {
    for (const timer of timers) clearInterval(timer);
    stats();
    metrics();
  };
}

async function run(transport: PortTransport, built: Promise<Opened>, running: RunningTelemetry): Promise<void> {
  const opened = await built;
  const { slot } = opened;
  try {
    await slot.open();
    report({ kind: 'opened' });
    const stop = reportFigures(slot, running);
    try {
      await slot.run();
    } finally {
      stop();
    }
    transport.close();
  } finally {
    await opened.close();
  }
}

async function main(): Promise<void> {
  const { id, generation, subtask, runnerId } = deployment;
  const attributes = { 'millrace.runner': runnerId, 'millrace.job': id, 'millrace.slot': subtask };
  const running = await startTelemetry({ service: 'task-runner', clock, env: process.env, attributes });
  const log = running.telemetry.log.child({ job: id, generation, subtask });
  const transport = new PortTransport(new Map(deployment.ports));
  const built = build(transport, { ...running.telemetry, log });
  serve(built);
  try {
    await run(transport, built, running);
    report({ kind: 'finished' });
  } catch (error) {
    report({ kind: 'failed', error: errorToJson(error) });
    transport.close(error);
  } finally {
    await running.shutdown();
    port.close();
  }
}

await main();
