import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { MillraceError } from '@millrace/kernel';
import { Connection } from '@temporalio/client';
import { freePort, requireFreePort } from './ports.ts';

/** Search attributes of Millrace's workflows; a production cluster needs them registered (docs/operations.md). */
export const searchAttributes = {
  millraceJob: 'Keyword',
  millraceState: 'Keyword',
  millraceGeneration: 'Int',
  millraceParallelism: 'Int',
  millraceCheckpoint: 'Int',
} as const;

export interface DevServerOptions {
  /** Path of the Temporal CLI. */
  readonly binary: string;
  /** Keeps the database, so that workflows survive a restart of the server. */
  readonly dataDir: string;
  /** 0 = any free port. */
  readonly port: number;
  readonly uiPort: number;
  /** Of the frontend's HTTP API; default: any free port. */
  readonly httpPort?: number;
  readonly startTimeoutMs?: number;
}

export interface DevServer {
  readonly address: string;
  readonly uiUrl: string;
  /** Of the frontend's HTTP API, which the Web UI uses, too. */
  readonly httpUrl: string;
  readonly pid: number;
  /** Resolves with the exit code when the server has ended, for whatever reason. */
  readonly exited: Promise<number | null>;
  stop(): Promise<void>;
}

/** Starts Temporal's embedded dev server (SQLite, Web UI) and resolves when it answers. */
export async function startDevServer(options: DevServerOptions): Promise<DevServer> {
  makeDirectory(options.dataDir);
  const port = await choosePort(options.port, '--temporal-port');
  const uiPort = await choosePort(options.uiPort, '--ui-port');
  const httpPort = options.httpPort ?? (await freePort());
  const child = spawn(options.binary, serverArguments(options.dataDir, port, uiPort, httpPort), {
    stdio: ['ignore', 'ignore', 'pipe'],
    // A group of its own: Ctrl-C in the terminal reaches the launcher, which stops the server last.
    detached: true,
  });
  let log = '';
  child.stderr.on('data', (bytes: Buffer) => {
    log = (log + bytes.toString()).slice(-4096);
  });
  const exited = new Promise<number | null>((resolve) => {
    child.once('error', () => resolve(null));
    child.once('close', (code) => resolve(code));
  });
  const address = `127.0.0.1:${port}`;
  const ready = await Promise.race([
    untilHealthy(address, options.startTimeoutMs ?? 30_000),
    exited.then((code) => `the server ended with code ${code}`),
  ]);
  if (ready !== undefined) {
    child.kill('SIGKILL');
    throw new MillraceError('temporal-start-failed', `Temporal server did not start: ${ready}\n${log.trim()}`);
  }
  return {
    address,
    uiUrl: `http://127.0.0.1:${uiPort}`,
    httpUrl: `http://127.0.0.1:${httpPort}`,
    pid: child.pid as number,
    exited,
    stop: () => stop(child, exited),
  };
}

function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { recursive: true });
  } catch (error) {
    throw new MillraceError(
      'bad-setting',
      `--data: cannot create ${path}. Choose a directory that can be written to.`,
      {
        cause: error,
      },
    );
  }
}

async function choosePort(port: number, setting: string): Promise<number> {
  if (port === 0) return freePort();
  await requireFreePort(port, setting);
  return port;
}

function serverArguments(dataDir: string, port: number, uiPort: number, httpPort: number): string[] {
  const config = {
    'history.transferProcessorMaxPollRPS': 1000,
    'history.timerProcessorMaxPollRPS': 1000,
    'history.visibilityProcessorMaxPollRPS': 200,
  };
  return ['server', 'start-dev', '--ui-disable-news-fetch'].concat(
    ['--ip', '127.0.0.1', '--port', String(port), '--http-port', String(httpPort)],
    ['--ui-ip', '127.0.0.1', '--ui-port', String(uiPort), '--log-level', 'warn'],
    ['--db-filename', join(dataDir, 'temporal.db')],
    ['--sqlite-pragma', 'journal_mode=wal', '--sqlite-pragma', 'synchronous=1'],
    Object.entries(config).flatMap(([name, value]) => ['--dynamic-config-value', `${name}=${value}`]),
    Object.entries(searchAttributes).flatMap(([name, type]) => ['--search-attribute', `${name}=${type}`]),
  );
}

/** Undefined when the frontend answers a request of the namespace `default`; else what it said last. */
async function untilHealthy(address: string, timeoutMs: number): Promise<string | undefined> {
  const deadline = performance.now() + timeoutMs;
  let last = 'no answer';
  while (performance.now() < deadline) {
    try {
      const connection = await Connection.connect({ address, connectTimeout: 1000 });
      try {
        await connection.workflowService.describeNamespace({ namespace: 'default' });
        return undefined;
      } finally {
        await connection.close();
      }
    } catch (error) {
      last = error instanceof Error ? error.message : String(error);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return `not healthy within ${timeoutMs / 1000} s: ${last}`;
}

async function stop(child: ChildProcess, exited: Promise<number | null>): Promise<void> {
  child.kill('SIGTERM');
  const killer = setTimeout(() => child.kill('SIGKILL'), 5000);
  await exited;
  clearTimeout(killer);
}
