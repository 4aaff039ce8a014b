import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** A Temporal server as `@millrace/temporal-server` starts it. */
export interface TestServer {
  readonly address: string;
  readonly uiUrl: string;
  readonly pid: number;
  readonly exited: Promise<unknown>;
}

/** Starts a server; port 0 = any free one. */
export type StartServer = (where: { dataDir: string; port: number; uiPort: number }) => Promise<TestServer>;

/** A control plane as its own process. */
export interface ControlProcess {
  readonly console: string;
  readonly exited: Promise<number | null>;
  kill(signal: NodeJS.Signals): Promise<void>;
}

/** A Temporal server and a state directory of their own; ends what it started. */
export class Environment {
  readonly directory = mkdtempSync(join(tmpdir(), 'millrace-runner-'));
  readonly #children = new Set<ChildProcess>();
  readonly #start: StartServer;
  #server: TestServer | undefined;
  #port = 0;
  #uiPort = 0;

  private constructor(start: StartServer) {
    this.#start = start;
  }

  static async start(start: StartServer): Promise<Environment> {
    const environment = new Environment(start);
    await environment.startServer();
    return environment;
  }

  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /** Starts the Temporal server, again with the same data and port. */
  async startServer(): Promise<void> {
    const dataDir = join(this.directory, 'temporal');
    this.#server = await this.#start({ dataDir, port: this.#port, uiPort: this.#uiPort });
    this.#port = Number(this.#server.address.split(':')[1]);
    this.#uiPort = Number(new URL(this.#server.uiUrl).port);
  }

  async killServer(): Promise<void> {
    if (this.#server === undefined) return;
    process.kill(this.#server.pid, 'SIGKILL');
    await this.#server.exited;
    this.#server = undefined;
  }

  /** Starts a control plane and waits until it says that it is ready. */
  async startControl(environment: Readonly<Record<string, string>> = {}): Promise<ControlProcess> {
    const main = fileURLToPath(new URL('../../../../control-plane/src/main.ts', import.meta.url));
    const child = spawn(process.execPath, [main], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...process.env,
        MILLRACE_TEMPORAL_ADDRESS: this.address,
        MILLRACE_STATE: `file://${join(this.directory, 'state')}?fsync=false`,
        MILLRACE_CONSOLE_PORT: '0',
        ...environment,
      },
    });
    this.#children.add(child);
    const exited = new Promise<number | null>((resolve) => {
      child.once('exit', (code) => {
        this.#children.delete(child);
        resolve(code);
      });
    });
    const line = await Promise.race([
      new Promise<string>((resolve) =>
        createInterface({ input: child.stdout as NodeJS.ReadableStream }).once('line', resolve),
      ),
      exited.then((code) => Promise.reject(new Error(`the control plane ended with code ${code}`))),
    ]);
    const { console } = JSON.parse(line) as { console: string };
    return {
      console,
      exited,
      kill: async (signal) => {
        child.kill(signal);
        await exited;
      },
    };
  }

  async stop(): Promise<void> {
    await Promise.all(
      [...this.#children].map(async (child) => {
        const gone = new Promise((resolve) => child.once('exit', resolve));
        child.kill('SIGKILL');
        await gone;
      }),
    );
    await this.killServer();
    rmSync(this.directory, { recursive: true, force: true });
  }
}
