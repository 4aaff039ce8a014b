import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { errorFromJson, MillraceError } from '@millrace/kernel';

export interface ProcessSpec {
  /** Name in messages and of the log file: `control-plane`, `task-runner-1`, … */
  readonly name: string;
  readonly script: string;
  readonly env: Readonly<Record<string, string>>;
  /** Standard error goes here; the file is appended to. */
  readonly logFile: string;
  readonly readyTimeoutMs: number;
}

/** The line that a process prints on standard output when it is ready. */
export type ReadyLine = Readonly<Record<string, unknown>>;

const restartDelayMs = 500;
const restartDelayMaxMs = 10_000;
const stopTimeoutMs = 8000;

/**
 * A child process that is started again when it dies, with growing delays, until it is stopped. It is ready when it
 * has printed one JSON line with a field `ready`.
 */
export class SupervisedProcess {
  readonly spec: ProcessSpec;
  readonly #onEvent: (message: string) => void;
  #child: ChildProcess | undefined;
  #stopping = false;
  #restarts = 0;
  #restartTimer: NodeJS.Timeout | undefined;
  #readyLine: ReadyLine | undefined;

  constructor(spec: ProcessSpec, onEvent: (message: string) => void) {
    this.spec = spec;
    this.#onEvent = onEvent;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** The newest ready line. */
  get readyLine(): ReadyLine | undefined {
    return this.#readyLine;
  }

  /** Starts the process; resolves with its ready line, rejects with what it said when it ends before. */
  async start(): Promise<ReadyLine> {
    const { child, ready } = this.#spawn();
    try {
      this.#readyLine = await ready;
    } catch (error) {
      this.#stopping = true;
      child.kill('SIGKILL');
      throw error;
    }
    this.#watch(child);
    return this.#readyLine;
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#restartTimer);
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
    child.kill('SIGTERM');
    const killer = setTimeout(() => {
      this.#onEvent(`${this.spec.name} did not stop within ${stopTimeoutMs / 1000} s and was killed`);
      child.kill('SIGKILL');
    }, stopTimeoutMs);
    await exited;
    clearTimeout(killer);
  }

  #spawn(): { child: ChildProcess; ready: Promise<ReadyLine> } {
    const log = openSync(this.spec.logFile, 'a');
    const child = spawn(process.execPath, [this.spec.script], {
      env: { ...process.env, ...this.spec.env },
      stdio: ['pipe', 'pipe', log],
      // A group of its own, so that Ctrl-C reaches the launcher only, which stops everything in order.
      detached: true,
    });
    closeSync(log);
    this.#child = child;
    return { child, ready: untilReady(child, this.spec) };
  }

  #watch(child: ChildProcess): void {
    child.once('close', (code, signal) => {
      if (this.#stopping) return;
      const delay = Math.min(restartDelayMs * 2 ** this.#restarts++, restartDelayMaxMs);
      this.#onEvent(
        `${this.spec.name} ended (${signal ?? `code ${code}`}); starting it again. Log: ${this.spec.logFile}`,
      );
      this.#restartTimer = setTimeout(() => this.#restart(), delay);
    });
  }

  #restart(): void {
    const { child, ready } = this.#spawn();
    this.#watch(child);
    ready.then(
      (line) => {
        this.#readyLine = line;
        this.#restarts = 0;
      },
      () => child.kill('SIGKILL'),
    );
  }
}

function untilReady(child: ChildProcess, spec: ProcessSpec): Promise<ReadyLine> {
  return new Promise((resolve, reject) => {
    let pending = '';
    const fail = (reason: string): void => {
      reject(new MillraceError('process-start-failed', `${spec.name} did not start: ${reason}. Log: ${spec.logFile}`));
    };
    const timer = setTimeout(() => fail(`not ready within ${spec.readyTimeoutMs / 1000} s`), spec.readyTimeoutMs);
    const done = (settle: () => void): void => {
      clearTimeout(timer);
      settle();
    };
    child.once('error', (error) => done(() => fail(error.message)));
    child.once('close', (code, signal) => done(() => fail(`it ended with ${signal ?? `code ${code}`}`)));
    child.stdout?.on('data', (bytes: Buffer) => {
      pending += bytes.toString();
      for (let end = pending.indexOf('\n'); end >= 0; end = pending.indexOf('\n')) {
        const line = parseLine(pending.slice(0, end));
        pending = pending.slice(end + 1);
        if (line?.ready !== undefined) done(() => resolve(line));
        if (line?.error !== undefined) done(() => reject(errorFromJson(line.error as never)));
      }
      pending = pending.slice(-65_536);
    });
  });
}

function parseLine(line: string): ReadyLine | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    return JSON.parse(line) as ReadyLine;
  } catch {
    return undefined;
  }
}
