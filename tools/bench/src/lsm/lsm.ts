import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { median, printResult } from '../result.ts';
import { Data } from './data.ts';
import type { Engine } from './engine.ts';
import { openLsm } from './lsm-engine.ts';
import { openRocksDb } from './rocksdb-engine.ts';

export interface LsmBenchOptions {
  readonly json: boolean;
  readonly keys: readonly number[];
  readonly valueBytes: readonly number[];
  readonly repeats: number;
}

const lookups = 64_000;
/** Of the values that the hot lookups ask for: they fit into a block cache of 32 MiB beside indexes and filters. */
const hotBytes = 12 * 1024 * 1024;

type Phase = (engine: Engine, data: Data) => Promise<number>;

/** Each resolves to the number of operations. */
const phases: ReadonlyArray<readonly [string, Phase]> = [
  [
    'get, all in the block cache',
    async (engine, data) => {
      const below = Math.min(data.keys, Math.floor(hotBytes / data.valueBytes));
      await engine.getEach(data, lookups, below);
      return lookups;
    },
  ],
  [
    'get of 64 in one call, all in the block cache',
    async (engine, data) => {
      const below = Math.min(data.keys, Math.floor(hotBytes / data.valueBytes));
      await engine.getMany(data, lookups, below);
      return lookups;
    },
  ],
  ['scan of everything', (engine) => engine.scan()],
];

interface Run {
  /** Operations a second, and processor microseconds of one, all threads together; by phase. */
  readonly rates: Map<string, { readonly perSecond: number; readonly cpuUs: number }>;
}

/**
 * The embedded LSM against RocksDB by the binding rocksdb-native: the same keys, values and batches, 64 MiB of memtables and
 * a block cache of 32 MiB each, one after the other in this process (A, B, A, B).
 */
export async function lsm(options: LsmBenchOptions): Promise<void> {
  for (const keys of options.keys) {
    for (const valueBytes of options.valueBytes) {
      const data = new Data(keys, valueBytes);
      const ours: Run[] = [];
      const theirs: Run[] = [];
      for (let i = 0; i < options.repeats; i++) {
        ours.push(await run(openLsm, data));
        theirs.push(await run(openRocksDb, data));
      }
      report(`keys=${keys} value=${valueBytes}`, { ours, theirs, json: options.json });
    }
  }
}

async function run(open: (directory: string) => Promise<Engine>, data: Data): Promise<Run> {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-bench-lsm-'));
  const rates: Run['rates'] = new Map();
  const measure = async (name: string, work: () => Promise<number>): Promise<void> => {
    const cpu = process.cpuUsage();
    const startMs = performance.now();
    const count = await work();
    const { user, system } = process.cpuUsage(cpu);
    const seconds = (performance.now() - startMs) / 1000;
    rates.set(name, { perSecond: count / seconds, cpuUs: (user + system) / count });
  };
  const engine = await open(join(directory, 'data'));
  try {
    await measure('batch writes', async () => {
      await engine.fill(data);
      return data.keys;
    });
    await engine.settle();
    for (const [name, phase] of phases) {
      // Once for the caches and the compiler.
      if (!name.startsWith('scan')) await phase(engine, data);
      await measure(name, () => phase(engine, data));
    }
  } finally {
    await engine.close();
    rmSync(directory, { recursive: true, force: true });
  }
  return { rates };
}

function report(
  what: string,
  { ours, theirs, json }: { ours: readonly Run[]; theirs: readonly Run[]; json: boolean },
): void {
  for (const phase of ours[0]?.rates.keys() ?? []) {
    const pick = (runs: readonly Run[], field: 'perSecond' | 'cpuUs'): number =>
      median(runs.map((one) => one.rates.get(phase)?.[field] ?? Number.NaN));
    const value = pick(ours, 'perSecond');
    const baseline = pick(theirs, 'perSecond');
    printResult(
      {
        bench: 'lsm',
        case: `${phase} ${what}`,
        value,
        unit: 'operations/s',
        baseline: 'rocksdb-native',
        ratio: value / baseline,
        baselineValue: baseline,
        cpuUs: pick(ours, 'cpuUs'),
        baselineCpuUs: pick(theirs, 'cpuUs'),
        runs: ours.length,
      },
      json,
    );
  }
}
