import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Stack } from '@millrace/cli';
import { connectMillrace, type JobHandle, type MillraceClient } from '@millrace/client';

export interface TestStackOptions {
  readonly runners: number;
  readonly slots: number;
  readonly compactors?: number;
  /** As `millrace run --state`. */
  readonly stateBackend?: string;
  readonly stateServices?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** URI of the file system that holds all state. Default: a directory of its own. */
  readonly dfs?: string;
}

/** A whole stack of real processes in a directory of its own, on free ports. */
export class TestStack implements AsyncDisposable {
  readonly directory: string;
  readonly stack: Stack;
  readonly events: string[] = [];
  #client: MillraceClient | undefined;

  private constructor(options: TestStackOptions) {
    this.directory = mkdtempSync(join(tmpdir(), 'millrace-e2e-'));
    this.stack = new Stack({
      dataDir: join(this.directory, 'data'),
      runners: options.runners,
      slotsPerRunner: options.slots,
      compactors: options.compactors ?? 0,
      stateBackend: options.stateBackend ?? 'lsm',
      stateServices: options.stateServices ?? 1,
      temporalPort: 0,
      uiPort: 0,
      consolePort: 0,
      ...(options.env === undefined ? {} : { env: options.env }),
      ...(options.dfs === undefined ? {} : { dfs: options.dfs }),
      onProgress: (message) => this.events.push(message),
    });
  }

  static async start(options: TestStackOptions): Promise<TestStack> {
    const test = new TestStack(options);
    try {
      await test.stack.start();
      test.#client = await connectMillrace({ address: test.stack.temporalAddress, namespace: 'default' });
      return test;
    } catch (error) {
      await test[Symbol.asyncDispose]();
      throw error;
    }
  }

  get client(): MillraceClient {
    if (this.#client === undefined) throw new Error('the stack is not started');
    return this.#client;
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  /** `kill -9` of a process of the stack by its name: `temporal`, `control-plane`, `task-runner-1`, … */
  kill(name: string): void {
    const pid = this.stack.pids[name];
    if (pid === undefined) throw new Error(`${name} does not run`);
    process.kill(pid, 'SIGKILL');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client?.close();
    await this.stack.stop();
    if (process.env.MILLRACE_E2E_KEEP === undefined) rmSync(this.directory, { recursive: true, force: true });
    else console.log(`kept: ${this.directory}`);
  }
}

/** Polls until `probe` gives a value; fails with what it waited for. */
export async function eventually<T>(
  what: string,
  timeoutMs: number,
  probe: () => Promise<T | undefined> | T | undefined,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const value = await probe();
    if (value !== undefined) return value;
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs / 1000} s in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Rounds that the job has registered so far. */
export async function registeredRounds(job: JobHandle): Promise<number[]> {
  return (await job.rounds()).map((round) => round.checkpoint);
}
