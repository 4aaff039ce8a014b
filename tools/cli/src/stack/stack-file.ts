import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What a running embedded stack leaves in its data directory, so that other commands find it. */
export interface StackFile {
  /** The launcher. */
  readonly pid: number;
  readonly temporalAddress: string;
  readonly temporalUi: string;
  readonly console: string;
  /** Every process that the launcher started, for clean-up after it was killed. */
  readonly children: readonly number[];
}

function stackPath(dataDir: string): string {
  return join(dataDir, 'stack.json');
}

export function writeStackFile(dataDir: string, stack: StackFile): void {
  const path = stackPath(dataDir);
  writeFileSync(`${path}.partial`, `${JSON.stringify(stack, null, 2)}\n`);
  renameSync(`${path}.partial`, path);
}

export function removeStackFile(dataDir: string): void {
  rmSync(stackPath(dataDir), { force: true });
}

/** The stack that the file describes, running or not; undefined when there is none or it cannot be read. */
export function readStackFile(dataDir: string): StackFile | undefined {
  try {
    return JSON.parse(readFileSync(stackPath(dataDir), 'utf8')) as StackFile;
  } catch {
    return undefined;
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** The embedded stack that runs on this data directory now. */
export function runningStack(dataDir: string): StackFile | undefined {
  const stack = readStackFile(dataDir);
  return stack !== undefined && isAlive(stack.pid) ? stack : undefined;
}
