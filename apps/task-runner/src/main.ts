/**
 * A task-runner process: composition root. Offers its slots through Temporal, serves gRPC to the control plane and to other
 * runners. Standard output carries one JSON line when it is ready, or with the error when it cannot start; the log goes to
 * standard error. SIGTERM and SIGINT: offers no more slots, ends its attempts, exit 0 within five seconds.
 */
import { readFileSync } from 'node:fs';
import { openDfs } from '@millrace/dfs';
import { systemClock as clock, errorToJson, MillraceError, systemRandom as random } from '@millrace/kernel';
import { MetricsServer, startTelemetry } from '@millrace/telemetry';
import { installTemporalRuntime } from '@millrace/temporal';
import { Attempts } from './attempt/attempts.ts';
import { CompactionBroker } from './compaction/compaction-broker.ts';
import { openRunnerCache } from './disk-cache/compose.ts';
import { JobRegistry } from './jobs/job-registry.ts';
import { RunnerServer } from './rpc/index.ts';
import { diskCacheSettings, type RunnerSettings, readSettings } from './settings.ts';
import { slotBudget } from './slots/slot-budget.ts';
import type { StateServiceAccess } from './slots/slot-protocol.ts';
import { SlotWorkers } from './slots/slot-workers.ts';
import { RunnerWorker, TemporalCompactions } from './temporal/index.ts';

/** Exit comes at the latest so long after a signal. */
const stopTimeoutMs = 4500;

interface Runner {
  readonly address: string;
  /** host:port of the metrics endpoint. */
  readonly metrics: string | undefined;
  stop(): Promise<void>;
}

async function start(settings: RunnerSettings): Promise<Runner> {
  const { runnerId, host, slots } = settings;
  const attributes = { 'millrace.runner': runnerId };
  const running = await startTelemetry({ service: 'task-runner', clock, env: process.env, attributes });
  const { telemetry } = running;
  installTemporalRuntime(telemetry.log);
  const dfs = await openDfs(settings.state, { clock, random, telemetry, setting: 'state' });
  const diskCache = await openRunnerCache(diskCacheSettings(settings), { dfs, telemetry });
  const server = new RunnerServer({ runnerId, clock, telemetry });
  const port = await server.listen(`${host}:${settings.port}`);
  const address = `${host}:${port}`;
  const budget = slotBudget(settings.slotMemory, settings.stateBackend === 'remote');
  const { frameBytes, frameDelayMs, channelWindowBytes, inFlightLimit } = settings;
  const { temporalAddress, namespace } = settings;
  const compactions = new TemporalCompactions({ address: temporalAddress, namespace, clock });
  const workers = new SlotWorkers({ budget, warmMax: slots, clock });
  const attempts = new Attempts({
    jobs: new JobRegistry(settings.jobs, process.cwd(), telemetry.log),
    dfs,
    dfsUri: settings.state,
    backend: settings.stateBackend,
    stateService: readStateService(settings),
    compaction: { place: settings.compaction, broker: new CompactionBroker(compactions) },
    diskCache: diskCache?.place,
    budget,
    workers,
    slot: {
      frameBytes,
      frameDelayMs,
      channelWindowBytes,
      inFlightLimit,
      workingSetBytes: budget.workingSetBytes,
      existenceBytes: budget.existenceBytes,
    },
    clock,
    random,
    telemetry,
    register: (attempt) => server.register(attempt),
  });
  const worker = new RunnerWorker({
    address: temporalAddress,
    namespace,
    runnerId,
    grpcAddress: address,
    slots,
    host: attempts,
    clock,
    random,
    telemetry,
  });
  const metrics = new MetricsServer(() => [{ families: running.metrics.collect() }, ...attempts.metrics()]);
  const { metricsPort } = settings;
  const metricsAt = metricsPort === undefined ? undefined : `${host}:${await metrics.listen(metricsPort, host)}`;
  worker.start();
  return {
    address,
    metrics: metricsAt,
    stop: async () => {
      await worker.stop();
      workers.close();
      await compactions.close();
      await server.close(500);
      metrics.close();
      await diskCache?.close();
      await dfs.close();
      await running.shutdown();
    },
  };
}

function readStateService(settings: RunnerSettings): StateServiceAccess | undefined {
  const { stateService: instances, stateServiceCa: ca, stateServiceTokenFile: tokenFile } = settings;
  if (instances === undefined) return undefined;
  const tlsCa = ca === undefined ? undefined : readFileSync(ca);
  return { instances, tlsCa, token: tokenFile === undefined ? undefined : readFileSync(tokenFile, 'utf8').trim() };
}

/** Synchronous, so that it is out before an exit. */
function say(line: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function logFatal(what: string, error: unknown): void {
  process.stderr.write(`${JSON.stringify({ level: 'error', message: what, error: errorToJson(error) })}\n`);
}

function exitOnSignals(runner: Runner): void {
  let stopping = false;
  const stop = (): void => {
    if (stopping) return;
    stopping = true;
    clock.schedule(stopTimeoutMs, () => process.exit(0));
    runner.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        logFatal('the runner did not stop cleanly', error);
        process.exit(0);
      },
    );
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  // The launcher may die without a word: then this input ends.
  if (process.env.MILLRACE_EXIT_WITH_STDIN === '1') process.stdin.on('end', stop).on('error', stop).resume();
}

function exitOnFaults(): void {
  const exit = (what: string) => (error: unknown) => {
    logFatal(what, error);
    process.exit(1);
  };
  process.on('unhandledRejection', exit('unhandled rejection'));
  process.on('uncaughtException', exit('uncaught exception'));
}

exitOnFaults();
try {
  const settings = readSettings(process.argv.slice(2), process.env, random);
  const runner = await start(settings);
  exitOnSignals(runner);
  const { address, metrics } = runner;
  say({ ready: 'task-runner', runnerId: settings.runnerId, address, slots: settings.slots, metrics });
} catch (error) {
  const failure = MillraceError.from(error);
  say({ error: errorToJson(failure) });
  logFatal('the runner did not start', failure);
  // What was opened already would keep the process alive.
  process.exit(1);
}
