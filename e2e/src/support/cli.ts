import { type ChildProcess, spawn } from 'node:child_process';
import { resolve } from 'node:path';

const workspace = resolve(import.meta.dirname, '../../..');
const main = resolve(workspace, 'tools/cli/src/main.ts');

export interface CliEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The `millrace` command as a process. */
export class CliProcess {
  readonly #child: ChildProcess;
  readonly ended: Promise<CliEnd>;
  #stdout = '';
  #stderr = '';

  constructor(command: string, args: readonly string[]) {
    this.#child = spawn(command, args, {
      cwd: workspace,
      env: { ...process.env, MILLRACE_TEMPORAL_ADDRESS: '', MILLRACE_DATA: undefined },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child.stdout?.on('data', (bytes: Buffer) => {
      this.#stdout += bytes.toString();
    });
    this.#child.stderr?.on('data', (bytes: Buffer) => {
      this.#stderr += bytes.toString();
    });
    this.ended = new Promise((done, reject) => {
      this.#child.once('error', reject);
      this.#child.once('close', (code, signal) => done({ code, signal, stdout: this.#stdout, stderr: this.#stderr }));
    });
  }

  /** The JSON lines so far that tell of an event of this name. */
  events(name: string): readonly Record<string, unknown>[] {
    return jsonLines(this.#stdout).filter((line) => line.event === name);
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }
}

export function startMillrace(...args: readonly string[]): CliProcess {
  return new CliProcess(process.execPath, [main, ...args]);
}

/** Runs `millrace` with these arguments to its end. */
export function millrace(...args: readonly string[]): Promise<CliEnd> {
  return startMillrace(...args).ended;
}

/** As a user's shell would: `npx millrace …`. */
export function npxMillrace(...args: readonly string[]): Promise<CliEnd> {
  return new CliProcess('npx', ['millrace', ...args]).ended;
}

/** Every line of the text as JSON; throws when one is not. The last may be half. */
export function jsonLines(text: string): readonly Record<string, unknown>[] {
  const lines = text.split('\n');
  lines.pop();
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}
