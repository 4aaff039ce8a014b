import { accessSync, constants, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { MillraceError } from '@millrace/kernel';
import {
  type DevServer,
  type DevServerOptions,
  freePort,
  requireFreePort,
  resolveTemporal,
  startDevServer,
} from '@millrace/temporal-server';
import { killLeftovers } from './leftovers.ts';
import { removeStackFile, runningStack, writeStackFile } from './stack-file.ts';
import { SupervisedProcess } from './supervised-process.ts';

export interface StackOptions {
  /** Holds Temporal's database, the jobs' state and the logs. */
  readonly dataDir: string;
  readonly runners: number;
  readonly slotsPerRunner: number;
  /** `lsm` and `memory` are in the slots; anything else is what state-services serve, each a process. Default `lsm`. */
  readonly stateBackend?: string;
  /** Default 1. */
  readonly stateServices?: number;
  /** Processes that merge state files; with any, runners leave that to them. Default 0. */
  readonly compactors?: number;
  /** URI of the file system that holds all state. Default: the directory `state` of `dataDir`. */
  readonly dfs?: string;
  /** 0 = any free port. */
  readonly temporalPort: number;
  readonly uiPort: number;
  readonly consolePort: number;
  /** Further environment of every process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Forget state, database and logs of earlier runs first. */
  readonly reset?: boolean;
  readonly onProgress: (message: string) => void;
}

const workspace = resolve(import.meta.dirname, '../../../..');
const embeddedBackends: readonly string[] = ['lsm', 'memory'];
const readyTimeoutMs = 60_000;
const temporalRestartDelayMs = 500;

/**
 * For glibc's allocator (others do not look at them): buffers above 128 KiB go back to the system when they are freed, and
 * threads share two arenas, else memory that is free stays with the process (docs/operations.md, Memory).
 */
const allocatorSettings = { MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '131072', MALLOC_TRIM_THRESHOLD_: '131072' };

/**
 * The embedded stack: a Temporal dev server, one control plane and N task-runners, each started again when it dies.
 * Stopping goes the other way round, so that runners can still report while they leave.
 */
export class Stack {
  readonly options: StackOptions;
  /** The control plane, then the runners. */
  readonly #processes: SupervisedProcess[] = [];
  readonly #stateServices: SupervisedProcess[] = [];
  #temporal: DevServer | undefined;
  #restarting: Promise<void> | undefined;
  #stopping = false;

  constructor(options: StackOptions) {
    this.options = options;
  }

  get temporalAddress(): string {
    return (this.#temporal as DevServer).address;
  }

  get temporalUi(): string {
    return (this.#temporal as DevServer).uiUrl;
  }

  /** Temporal's HTTP API, which its Web UI posts to. */
  get temporalHttp(): string {
    return (this.#temporal as DevServer).httpUrl;
  }

  get console(): string {
    return String(this.#processes[0]?.readyLine?.console);
  }

  /** What a process has said when it was ready. */
  readyLine(name: string): Readonly<Record<string, unknown>> | undefined {
    return this.#processes.find((process) => process.spec.name === name)?.readyLine;
  }

  get pids(): Readonly<Record<string, number | undefined>> {
    const named = [...this.#processes, ...this.#stateServices].map(
      (process) => [process.spec.name, process.pid] as const,
    );
    return Object.fromEntries([['temporal', this.#temporal?.pid] as const, ...named]);
  }

  /** Brings everything up; on failure stops what was started and rejects. */
  async start(): Promise<void> {
    const { dataDir, onProgress } = this.options;
    prepareDirectory(dataDir);
    const running = runningStack(dataDir);
    if (running !== undefined) {
      throw new MillraceError(
        'stack-running',
        `A stack already runs on ${dataDir} (process ${running.pid}, console ${running.console}). Stop it, or choose another directory with --data.`,
      );
    }
    await killLeftovers(dataDir, onProgress);
    // Only now: nobody uses the data any more.
    if (this.options.reset === true) {
      resetData(dataDir);
      if (this.options.dfs !== undefined) onProgress(`What is in ${this.options.dfs} stays; remove it there.`);
    }
    if (this.options.consolePort !== 0) await requireFreePort(this.options.consolePort, '--console-port');
    try {
      await this.#startTemporal();
      await this.#startProcesses();
    } catch (error) {
      await this.stop();
      throw error;
    }
    this.#writeFile();
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    const [controlPlane, ...runners] = this.#processes;
    await Promise.all(runners.map((runner) => runner.stop()));
    await controlPlane?.stop();
    await Promise.all(this.#stateServices.map((service) => service.stop()));
    await this.#restarting;
    if (this.#temporal === undefined) return;
    await this.#temporal.stop();
    // Only a stack that got so far may have written it: the file of a stack that runs here already stays.
    removeStackFile(this.options.dataDir);
  }

  async #startTemporal(): Promise<void> {
    const { dataDir, temporalPort, uiPort, onProgress } = this.options;
    const binary = await resolveTemporal({ onProgress });
    const serverOptions = { binary, dataDir: join(dataDir, 'temporal') };
    const server = await startDevServer({ ...serverOptions, port: temporalPort, uiPort });
    const portOf = (url: string): number => Number(new URL(url).port);
    const again = {
      ...serverOptions,
      port: portOf(`http://${server.address}`),
      uiPort: portOf(server.uiUrl),
      httpPort: portOf(server.httpUrl),
    };
    this.#superviseTemporal(server, again);
  }

  #superviseTemporal(server: DevServer, again: DevServerOptions): void {
    this.#temporal = server;
    void server.exited.then(async (code) => {
      if (this.#stopping) return;
      this.options.onProgress(`Temporal server ended (code ${code}); starting it again`);
      this.#restarting = this.#restartTemporal(again);
      await this.#restarting;
    });
  }

  /** Tries until it answers or the stack is stopped. */
  async #restartTemporal(again: DevServerOptions): Promise<void> {
    while (!this.#stopping) {
      try {
        const server = await startDevServer(again);
        this.#superviseTemporal(server, again);
        if (!this.#stopping) this.#writeFile();
        return;
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        this.options.onProgress(`Temporal server could not be started again, trying on: ${reason}`);
        await new Promise((resolve) => setTimeout(resolve, temporalRestartDelayMs));
      }
    }
  }

  async #startProcesses(): Promise<void> {
    const { dataDir, runners, slotsPerRunner, compactors = 0, consolePort, onProgress } = this.options;
    const logs = join(dataDir, 'logs');
    mkdirSync(logs, { recursive: true });
    const common = {
      MILLRACE_TEMPORAL_ADDRESS: this.temporalAddress,
      MILLRACE_STATE: this.options.dfs ?? pathToFileURL(resolve(dataDir, 'state')).href,
      NODE_COMPILE_CACHE: join(dataDir, 'compile-cache'),
      ...allocatorSettings,
      ...(compactors > 0 ? { MILLRACE_COMPACTION: 'remote' } : {}),
      // The processes leave when the launcher is gone: their standard input ends.
      MILLRACE_EXIT_WITH_STDIN: '1',
      ...this.options.env,
    };
    const make = (name: string, app: string, env: Record<string, string>): SupervisedProcess => {
      const script = join(workspace, 'apps', app, 'src', 'main.ts');
      const spec = { name, script, env: { ...common, ...env }, logFile: join(logs, `${name}.log`), readyTimeoutMs };
      return new SupervisedProcess(spec, onProgress);
    };
    const add = (...spec: Parameters<typeof make>): Promise<unknown> => {
      const process = make(...spec);
      this.#processes.push(process);
      return process.start();
    };
    const state = await this.#startStateServices(make);
    // Chosen here, so that the console is where it was after the control plane was started again.
    const port = consolePort === 0 ? await freePort() : consolePort;
    const starting = [add('control-plane', 'control-plane', { MILLRACE_CONSOLE_PORT: String(port) })];
    for (let i = 1; i <= runners; i++) {
      const name = `task-runner-${i}`;
      starting.push(add(name, 'task-runner', { ...state, MILLRACE_RUNNER_SLOTS: String(slotsPerRunner) }));
    }
    for (let i = 1; i <= compactors; i++) {
      starting.push(add(`compactor-${i}`, 'state-service', { MILLRACE_STATE_SERVICE_ROLE: 'compactor' }));
    }
    await Promise.all(starting);
  }

  /** Starts what the backend needs; what the runners are told of it. First, so that a backend that cannot be used is told. */
  async #startStateServices(
    make: (name: string, app: string, env: Record<string, string>) => SupervisedProcess,
  ): Promise<Record<string, string>> {
    const { dataDir, stateBackend = 'lsm', stateServices = 1 } = this.options;
    if (embeddedBackends.includes(stateBackend)) return { MILLRACE_STATE_BACKEND: stateBackend };
    const instances: string[] = [];
    for (let i = 1; i <= stateServices; i++) {
      const name = `state-service-${i}`;
      // Chosen here, so that the runners find it where it was after it was started again.
      const port = await freePort();
      const process = make(name, 'state-service', {
        MILLRACE_STATE_SERVICE_BACKEND: stateBackend,
        MILLRACE_STATE_SERVICE_DIRECTORY: join(dataDir, name),
        MILLRACE_STATE_SERVICE_PORT: String(port),
      });
      this.#stateServices.push(process);
      instances.push(`${name}=127.0.0.1:${port}`);
    }
    await Promise.all(this.#stateServices.map((process) => process.start()));
    return { MILLRACE_STATE_BACKEND: 'remote', MILLRACE_STATE_SERVICE: instances.join(',') };
  }

  #writeFile(): void {
    const children = Object.values(this.pids).filter((pid) => pid !== undefined);
    const { temporalAddress, temporalUi, console } = this;
    writeStackFile(this.options.dataDir, { pid: process.pid, temporalAddress, temporalUi, console, children });
  }
}

function resetData(dataDir: string): void {
  const services = readdirSync(dataDir).filter((name) => name.startsWith('state-service-'));
  for (const part of ['temporal', 'state', 'logs', ...services]) {
    rmSync(join(dataDir, part), { recursive: true, force: true });
  }
}

function prepareDirectory(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true });
    accessSync(dataDir, constants.W_OK);
  } catch (error) {
    throw new MillraceError('bad-setting', `--data: ${dataDir} cannot be written to. Choose another directory.`, {
      cause: error,
    });
  }
}
