import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fetchLiveFigures, Stack } from '@millrace/cli';
import { connectMillrace, type JobHandle } from '@millrace/client';
import { cpuSeconds, residentBytes } from './cpu.ts';
import { FlinkPeer } from './flink.ts';
import { median, printResult } from './result.ts';

export interface WordcountOptions {
  readonly json: boolean;
  /** Directory of the Flink program; undefined measures Millrace alone. */
  readonly flink: string | undefined;
  readonly keys: readonly number[];
  readonly parallelism: readonly number[];
  readonly backends: readonly string[];
  /** Measured seconds of each run, after every key has been written once. */
  readonly seconds: number;
  readonly repeats: number;
  /** Read the old payload before it is replaced (read-modify-write of both states). */
  readonly readBoth: boolean;
  readonly checkpointIntervalMs: number;
  /** `MILLRACE_SLOT_MEMORY` of the runner. Flink has 1 GB of managed memory a slot, and 6 GB of heap. */
  readonly slotMemory: string;
}

interface Measured {
  readonly recordsPerSecond: number;
  readonly cpuCores: number;
  readonly checkpoints: number;
  readonly checkpointMs: number;
  readonly runnerRssMb: number;
}

/** Never reached: the job is stopped when it has been measured. */
const flinkRecords = 1e9;
/** Left out at the start, after the fill; its default would be a share of all records. */
const flinkWarmRecords = 200_000;

/**
 * Keyed read-modify-write of two states (a count and a 100-byte payload) over uniform keys, through the whole stack:
 * Temporal server, control plane, one runner, LSM on a local directory, checkpoints. Every key is written once before
 * the measurement begins, so state has its full size throughout.
 */
export async function wordcount(options: WordcountOptions): Promise<void> {
  const peer = options.flink === undefined ? undefined : new FlinkPeer(options.flink);
  for (const keys of options.keys) {
    for (const parallelism of options.parallelism) await measureCase(options, peer, keys, parallelism);
  }
}

async function measureCase(
  options: WordcountOptions,
  peer: FlinkPeer | undefined,
  keys: number,
  parallelism: number,
): Promise<void> {
  const ours: Measured[] = [];
  const theirs = new Map<string, number[]>(options.backends.map((backend) => [backend, []]));
  for (let i = 0; i < options.repeats; i++) {
    ours.push(await runMillrace(options, keys, parallelism));
    if (peer === undefined) continue;
    const args = [String(flinkRecords), String(keys), String(parallelism), 'fill=1', 'payload=100'];
    args.push(`warm=${flinkWarmRecords}`);
    args.push(`seconds=${options.seconds}`, `interval=${options.checkpointIntervalMs} ms`);
    if (options.readBoth) args.push('readBoth=1');
    for (const backend of options.backends) {
      theirs.get(backend)?.push((await peer.run('wordcount', backend, args)).recordsPerSecond);
    }
  }
  const name = `keys=${keys} p=${parallelism}`;
  const rate = median(ours.map((run) => run.recordsPerSecond));
  const detail = {
    cpuCores: median(ours.map((run) => run.cpuCores)),
    checkpoints: median(ours.map((run) => run.checkpoints)),
    checkpointMs: median(ours.map((run) => run.checkpointMs)),
    runnerRssMb: median(ours.map((run) => run.runnerRssMb)),
    runs: options.repeats,
  };
  printResult(
    { bench: 'wordcount', case: `millrace ${name}`, value: rate, unit: 'records/s', ...detail },
    options.json,
  );
  if (peer === undefined) return;
  for (const [backend, rates] of theirs) {
    const value = median(rates);
    printResult(
      { bench: 'wordcount', case: `flink-${backend} ${name}`, value, unit: 'records/s', runs: rates.length },
      options.json,
    );
    const ratio = rate / value;
    printResult(
      {
        bench: 'wordcount',
        case: `millrace / flink-${backend} ${name}`,
        value: ratio,
        unit: '×',
        baseline: `flink-${backend}`,
        ratio,
      },
      options.json,
    );
  }
}

async function runMillrace(options: WordcountOptions, keys: number, parallelism: number): Promise<Measured> {
  const dataDir = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  const stack = new Stack({
    dataDir,
    runners: 1,
    slotsPerRunner: parallelism,
    temporalPort: 0,
    uiPort: 0,
    consolePort: 0,
    env: { MILLRACE_SLOT_MEMORY: options.slotMemory },
    onProgress: () => undefined,
  });
  try {
    await stack.start();
    const client = await connectMillrace({ address: stack.temporalAddress, namespace: 'default' });
    try {
      const job = await client.startJob({
        job: 'wordcount',
        parallelism,
        checkpointIntervalMs: options.checkpointIntervalMs,
        options: { keys, records: 0, payloadBytes: 100, fill: true, readBoth: options.readBoth },
      });
      await untilRead(stack.console, job, keys);
      const runner = stack.pids['task-runner-1'] as number;
      const before = await figuresAt(stack.console, runner);
      await new Promise((resolve) => setTimeout(resolve, options.seconds * 1000));
      const after = await figuresAt(stack.console, runner);
      const seconds = (after.atMs - before.atMs) / 1000;
      const rounds = await job.rounds();
      await job.cancel();
      return {
        recordsPerSecond: (after.records - before.records) / seconds,
        cpuCores: (after.cpu - before.cpu) / seconds,
        checkpoints: rounds.length,
        checkpointMs: median(rounds.map((round) => round.durationMs)),
        runnerRssMb: Math.round(residentBytes(runner) / 1e6),
      };
    } finally {
      await client.close();
    }
  } finally {
    await stack.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function figuresAt(console: string, runner: number): Promise<{ records: number; cpu: number; atMs: number }> {
  const figures = await fetchLiveFigures(console, 'wordcount');
  if (figures === undefined) throw new Error('the console did not answer');
  return { records: figures.recordsRead, cpu: cpuSeconds(runner), atMs: performance.now() };
}

async function untilRead(console: string, job: JobHandle, records: number): Promise<void> {
  const deadline = performance.now() + 300_000;
  while (performance.now() < deadline) {
    const figures = await fetchLiveFigures(console, job.id);
    if (figures !== undefined && figures.recordsRead > records) return;
    const { state, lastFailure } = await job.status();
    if (state === 'failed' || state === 'cancelled') throw new Error(`the job is ${state}: ${lastFailure}`);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new Error(`the job did not read ${records} records within 300 s`);
}
