import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { cachePolicies, cachePolicy } from '@millrace/cache';
import { printResult } from '../result.ts';
import { coldStart, movingHotSet, thrash } from './model-traces.ts';
import { recordTraces } from './record.ts';
import { type Replayed, replay } from './replay.ts';
import { readTrace, type Trace, writeTrace } from './trace.ts';

export interface DiskCacheBenchOptions {
  readonly json: boolean;
  /** Seconds for which each job is run to record its trace anew; undefined: the traces of the repository. */
  readonly recordSeconds: number | undefined;
}

const mib = 1024 * 1024;
const directory = join(import.meta.dirname, 'traces');
const recorded = ['wordcount', 'nexmark-q18'];
const baseline = 'lru';

/**
 * Hit ratios of the disk cache's policies: on traces recorded from real runs, with caches of a quarter, a half and three
 * quarters of the bytes that are read; and on seeded models, with a cache of 50 files.
 */
export async function diskCache({ json, recordSeconds }: DiskCacheBenchOptions): Promise<void> {
  if (recordSeconds !== undefined) {
    for (const trace of await recordTraces(recordSeconds)) writeTrace(pathOf(trace.name), trace);
  }
  for (const name of recorded.filter((each) => existsSync(pathOf(each)))) {
    const trace = readTrace(name, pathOf(name));
    const bytes = readBytes(trace);
    for (const share of [0.25, 0.5, 0.75]) {
      compare(trace, `${name}, cache ${share * 100} %`, bytes * share, json);
    }
  }
  for (const trace of [thrash(), coldStart(), movingHotSet(1)])
    compare(trace, `model: ${trace.name}`, 50 * 8 * mib, json);
}

function pathOf(name: string): string {
  return join(directory, `${name}.json.gz`);
}

/** Bytes of all files that are ever read. */
function readBytes({ events }: Trace): number {
  const sizes = new Map(events.flatMap((event) => (event.kind === 'read' ? [[event.file, event.bytes] as const] : [])));
  return [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
}

function compare(trace: Trace, title: string, bytesMax: number, json: boolean): void {
  const results = new Map(cachePolicies.map((name) => [name, replay(trace, cachePolicy(name), bytesMax)]));
  const base = hitPercent(results.get(baseline) as Replayed);
  for (const [policy, result] of results) {
    const value = hitPercent(result);
    const paired = policy === baseline || base === 0 ? {} : { baseline, ratio: value / base };
    const { reads, loads, evictions } = result;
    const loadedMib = Math.round(result.loadedBytes / mib);
    const details = { ...paired, reads, loads, loadedMib, evictions };
    const loaded = json ? '' : ` (loads ${loadedMib} MiB)`;
    printResult({ bench: 'disk-cache', case: `${title}: ${policy}${loaded}`, value, unit: '% hits', ...details }, json);
  }
}

function hitPercent({ hits, reads }: Replayed): number {
  return reads === 0 ? 0 : (100 * hits) / reads;
}
