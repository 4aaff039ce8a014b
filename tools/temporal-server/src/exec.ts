import { spawn } from 'node:child_process';

export interface ExecResult {
  readonly ok: boolean;
  /** Standard output, at most the last 64 KiB. */
  readonly stdout: string;
  /** Why it failed, in a line: from standard error, the exit code, or that it took too long. */
  readonly reason: string;
}

/** Runs a program to its end, or kills it after `timeoutMs`. Never rejects. */
export function exec(
  command: string,
  args: readonly string[],
  options: { timeoutMs: number; cwd?: string; env?: NodeJS.ProcessEnv },
): Promise<ExecResult> {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: options.env ?? process.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (bytes: Buffer) => {
      stdout = (stdout + bytes.toString()).slice(-65_536);
    });
    child.stderr.on('data', (bytes: Buffer) => {
      stderr = (stderr + bytes.toString()).slice(-65_536);
    });
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      child.kill('SIGKILL');
    }, options.timeoutMs);
    const end = (ok: boolean, reason: string): void => {
      clearTimeout(timer);
      resolve({ ok, stdout, reason });
    };
    child.once('error', (error: NodeJS.ErrnoException) => {
      end(false, error.code === 'ENOENT' ? `${command} is not installed` : error.message);
    });
    child.once('close', (code) => {
      if (timedOut) return end(false, `no answer within ${options.timeoutMs / 1000} s`);
      end(code === 0, code === 0 ? '' : tellingLine(stderr) || `exit code ${code}`);
    });
  });
}

/** The line of a program's complaint that says most: the first that names an error, else the last. */
function tellingLine(stderr: string): string {
  const lines = stderr.trim().split('\n');
  const line = lines.find((text) => /error[:!]/i.test(text)) ?? lines.at(-1) ?? '';
  return line.trim().slice(0, 300);
}
