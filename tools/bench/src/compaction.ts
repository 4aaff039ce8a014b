import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fetchLiveFigures, Stack } from '@millrace/cli';
import { connectMillrace } from '@millrace/client';
import { cpuSeconds } from './cpu.ts';
import { median, printResult } from './result.ts';

export interface CompactionBenchOptions {
  readonly json: boolean;
  readonly keys: readonly number[];
  readonly seconds: number;
  readonly repeats: number;
  readonly checkpointIntervalMs: number;
}

interface Measured {
  readonly recordsPerSecond: number;
  /** Processor seconds of the runner for a million records. */
  readonly runnerCpu: number;
  readonly compactorCpu: number;
  /** Of the milliseconds that ten thousand records took, over windows of a quarter of a second. */
  readonly p99Ms: number;
  readonly roundP99Ms: number;
}

const compactors = 2;
const windowMs = 250;

/**
 * The wordcount job with its state merged in the slots and by compactors, one after the other (A, B, A, B), on this
 * machine: where all its processors are busy compactors take from the runner what they save it. What is freed then
 * shows in the runner's processor time, not in records a second.
 */
export async function compaction(options: CompactionBenchOptions): Promise<void> {
  for (const keys of options.keys) {
    const local: Measured[] = [];
    const remote: Measured[] = [];
    for (let i = 0; i < options.repeats; i++) {
      local.push(await run(options, keys, 0));
      remote.push(await run(options, keys, compactors));
    }
    report(keys, { local, remote, json: options.json });
  }
}

function report(
  keys: number,
  { local, remote, json }: { local: readonly Measured[]; remote: readonly Measured[]; json: boolean },
): void {
  const figures: ReadonlyArray<readonly [keyof Measured, string]> = [
    ['recordsPerSecond', 'records/s'],
    ['runnerCpu', 's CPU of the runner / 1 M records'],
    ['compactorCpu', 's CPU of the compactors / 1 M records'],
    ['p99Ms', 'ms for 10,000 records, p99'],
    ['roundP99Ms', 'ms of a checkpoint, p99'],
  ];
  for (const [field, unit] of figures) {
    const value = median(remote.map((one) => one[field]));
    const baseline = median(local.map((one) => one[field]));
    const paired =
      field === 'compactorCpu' ? {} : { baseline: 'in the slots', ratio: value / baseline, local: baseline };
    printResult({ bench: 'compaction', case: `by compactors keys=${keys}`, value, unit, ...paired }, json);
  }
}

async function run(options: CompactionBenchOptions, keys: number, count: number): Promise<Measured> {
  const dataDir = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  const ports = { temporalPort: 0, uiPort: 0, consolePort: 0 };
  const places = { dataDir, runners: 1, slotsPerRunner: 1, compactors: count };
  const stack = new Stack({ ...places, ...ports, onProgress: () => undefined });
  try {
    await stack.start();
    const client = await connectMillrace({ address: stack.temporalAddress, namespace: 'default' });
    try {
      const job = await client.startJob({
        job: 'wordcount',
        parallelism: 1,
        checkpointIntervalMs: options.checkpointIntervalMs,
        compaction: count > 0 ? 'remote' : 'local',
        options: { keys, records: 0, payloadBytes: 100, fill: true },
      });
      while ((await recordsRead(stack)) <= keys) await pause();
      const figures = await measure(stack, count, options.seconds * 1000);
      const rounds = (await job.rounds()).map((round) => round.durationMs);
      await job.cancel();
      return { ...figures, roundP99Ms: percentile(rounds, 0.99) };
    } finally {
      await client.close();
    }
  } finally {
    await stack.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function measure(stack: Stack, count: number, durationMs: number): Promise<Omit<Measured, 'roundP99Ms'>> {
  const cpuOf = (names: readonly string[]): number =>
    names.reduce((sum, name) => sum + cpuSeconds(stack.pids[name] as number), 0);
  const others = Array.from({ length: count }, (_, i) => `compactor-${i + 1}`);
  const before = { runner: cpuOf(['task-runner-1']), compactors: cpuOf(others) };
  const first = { atMs: performance.now(), records: await recordsRead(stack) };
  const windows: number[] = [];
  let last = first;
  while (last.atMs - first.atMs < durationMs) {
    await pause();
    const now = { atMs: performance.now(), records: await recordsRead(stack) };
    windows.push(((now.atMs - last.atMs) * 10_000) / Math.max(1, now.records - last.records));
    last = now;
  }
  const records = last.records - first.records;
  return {
    recordsPerSecond: (records * 1000) / (last.atMs - first.atMs),
    runnerCpu: ((cpuOf(['task-runner-1']) - before.runner) * 1e6) / records,
    compactorCpu: ((cpuOf(others) - before.compactors) * 1e6) / records,
    p99Ms: percentile(windows, 0.99),
  };
}

async function recordsRead(stack: Stack): Promise<number> {
  return (await fetchLiveFigures(stack.console, 'wordcount'))?.recordsRead ?? 0;
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, windowMs));
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
