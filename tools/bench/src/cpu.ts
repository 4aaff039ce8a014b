import { readFileSync } from 'node:fs';

const ticksPerSecond = 100;

/** CPU seconds (user and system) that a process has used so far; 0 where /proc does not tell. */
export function cpuSeconds(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
  } catch {
    return 0;
  }
}

/** Resident memory of a process in bytes; 0 where /proc does not tell. */
export function residentBytes(pid: number): number {
  try {
    const line = readFileSync(`/proc/${pid}/status`, 'utf8').match(/^VmRSS:\s+(\d+) kB/m);
    return Number(line?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}
