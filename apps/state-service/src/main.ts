/**
 * A state-service process: composition root. Serves state tables over gRPC. Standard output
 * carries one JSON line when it is ready, or with the error when it cannot start; the log goes to standard error. SIGTERM
 * and SIGINT: opens no more tables, answers what is under way, exit 0. Nothing is lost by a kill but unsaved writes, which
 * the attempts redo from their last checkpoint.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Dfs, openDfs } from '@millrace/dfs';
import { systemClock as clock, errorToJson, MillraceError, systemRandom as random } from '@millrace/kernel';
import { WorkerExecutor } from '@millrace/lsm';
import type { StateStore } from '@millrace/state';
import { MetricsServer, startTelemetry, type Telemetry } from '@millrace/telemetry';
import type { BackgroundFilesConfig } from './backend/background-files.ts';
import { lsmBackend, memoryBackend, retainedBackend } from './backend/compose.ts';
import { loadBackend } from './backend/load-backend.ts';
import { readRole } from './role.ts';
import { type ServerSecurity, StateServer } from './service/state-server.ts';
import { helpText, readSettings, type ServiceSettings } from './settings.ts';

/** Beyond the grace of the drain, exit comes at the latest after so long. */
const stopTimeoutMs = 2000;
const executorCloseTimeoutMs = 1000;

interface OpenBackend {
  readonly store: StateStore;
  /** What lies beneath the store. */
  close(): Promise<void>;
}

interface Service {
  readonly address: string;
  /** host:port of the metrics endpoint. */
  readonly metrics: string | undefined;
  stop(): Promise<void>;
}

async function openBackend(settings: ServiceSettings, telemetry: Telemetry): Promise<OpenBackend> {
  if (settings.backend === 'memory') return { store: memoryBackend(clock), close: () => Promise.resolve() };
  const dfs = await openDfs(settings.state, { clock, random, telemetry, setting: 'state' });
  if (settings.backend === 'lsm') return { store: openLsm(settings, telemetry, dfs), close: () => dfs.close() };
  const createStateBackend = await loadBackend(settings.backend, process.cwd());
  const directory = join(settings.directory, encodeURIComponent(settings.backend));
  mkdirSync(directory, { recursive: true });
  const store = await createStateBackend({ directory, options: settings.backendOptions, clock, random, telemetry });
  return { store: retainedBackend({ store, dfs, clock, random, telemetry }), close: () => dfs.close() };
}

function openLsm(settings: ServiceSettings, telemetry: Telemetry, dfs: Dfs): StateStore {
  const specifier = new URL('./backend/background-files.ts', import.meta.url).href;
  return lsmBackend({
    dfs,
    random,
    clock,
    systemClock: clock,
    telemetry,
    cacheBytes: settings.cache,
    memtableBytes: settings.memtable,
    executor: (_storage, jobId, generation) => {
      const config: BackgroundFilesConfig = { dfs: settings.state, jobId, generation };
      return new WorkerExecutor({ files: { specifier, config }, clock, closeTimeoutMs: executorCloseTimeoutMs });
    },
  });
}

function readSecurity({ tlsCert, tlsKey, tokenFile }: ServiceSettings): ServerSecurity {
  const tls =
    tlsCert === undefined || tlsKey === undefined
      ? undefined
      : { cert: readFileSync(tlsCert), key: readFileSync(tlsKey) };
  return { tls, token: tokenFile === undefined ? undefined : readFileSync(tokenFile, 'utf8').trim() };
}

async function start(settings: ServiceSettings): Promise<Service> {
  const running = await startTelemetry({ service: 'state-service', clock, env: process.env });
  const { telemetry } = running;
  const backend = await openBackend(settings, telemetry);
  const { tablesMax } = settings;
  const security = readSecurity(settings);
  const server = new StateServer({ store: backend.store, clock, telemetry, limits: { tablesMax }, security });
  const host = settings.host.includes(':') ? `[${settings.host}]` : settings.host;
  const port = await server.listen(`${host}:${settings.port}`);
  const endpoint = new MetricsServer(() => [{ families: running.metrics.collect() }]);
  const { metricsPort } = settings;
  const metricsAt = metricsPort === undefined ? undefined : await endpoint.listen(metricsPort, settings.host);
  return {
    address: `${host}:${port}`,
    metrics: metricsAt === undefined ? undefined : `${host}:${metricsAt}`,
    stop: async () => {
      await server.close(settings.drainMs);
      endpoint.close();
      await backend.close();
      await running.shutdown();
    },
  };
}

/** Synchronous, so that it is out before an exit. */
function say(line: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function logFatal(what: string, error: unknown): void {
  process.stderr.write(`${JSON.stringify({ level: 'error', message: what, error: errorToJson(error) })}\n`);
}

function exitOnSignals(service: Pick<Service, 'stop'>, drainMs: number): void {
  let stopping = false;
  const stop = (): void => {
    if (stopping) return;
    stopping = true;
    clock.schedule(drainMs + stopTimeoutMs, () => process.exit(0));
    service.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        logFatal('the state-service did not stop cleanly', error);
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

/** The other role: no tables, no gRPC; Temporal is loaded only here. */
async function runCompactor(argv: readonly string[]): Promise<void> {
  const { compactorHelp, readCompactorSettings } = await import('./compactor/settings.ts');
  if (argv.includes('--help')) {
    process.stdout.write(`${compactorHelp()}\n`);
    return;
  }
  const settings = readCompactorSettings(argv, process.env);
  const { startCompactor } = await import('./compactor/compose.ts');
  const compactor = await startCompactor(settings);
  exitOnSignals(compactor, 0);
  say({ ready: 'compactor', state: settings.state, metrics: compactor.metrics });
}

async function main(all: readonly string[]): Promise<void> {
  exitOnFaults();
  try {
    const { role, rest: argv } = readRole(all, process.env);
    if (role === 'compactor') {
      await runCompactor(argv);
      return;
    }
    if (argv.includes('--help')) {
      process.stdout.write(`${helpText()}\n`);
      return;
    }
    const settings = readSettings(argv, process.env);
    const service = await start(settings);
    exitOnSignals(service, settings.drainMs);
    const { address, metrics } = service;
    say({ ready: 'state-service', address, metrics, backend: settings.backend, state: settings.state });
  } catch (error) {
    const failure = MillraceError.from(error);
    say({ error: errorToJson(failure) });
    logFatal('the state-service did not start', failure);
    process.exitCode = 1;
  }
}

await main(process.argv.slice(2));
