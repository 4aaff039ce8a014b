import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { isAlive, readStackFile, removeStackFile } from './stack-file.ts';

const run = promisify(execFile);

/** Ends processes that a killed launcher left behind, after checking that the process ids are still theirs. */
export async function killLeftovers(dataDir: string, onProgress: (message: string) => void): Promise<void> {
  const stack = readStackFile(dataDir);
  if (stack === undefined) return;
  for (const pid of stack.children) {
    if (!isAlive(pid) || !(await isOurs(pid))) continue;
    onProgress(`ending process ${pid}, left behind by an earlier run`);
    process.kill(pid, 'SIGTERM');
    for (let i = 0; i < 50 && isAlive(pid); i++) await new Promise((resolve) => setTimeout(resolve, 100));
    if (isAlive(pid)) process.kill(pid, 'SIGKILL');
  }
  removeStackFile(dataDir);
}

async function isOurs(pid: number): Promise<boolean> {
  try {
    const { stdout } = await run('ps', ['-o', 'command=', '-p', String(pid)]);
    return /apps\/(control-plane|task-runner)\/src\/main\.ts|temporal.* start-dev/.test(stdout);
  } catch {
    return false;
  }
}
