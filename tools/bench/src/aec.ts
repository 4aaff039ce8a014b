import { systemClock as clock } from '@millrace/kernel';
import { int64, value } from '@millrace/state';
import { buildGraph, discard, generator, job } from '@millrace/streams';
import { LocalCluster } from '@millrace/streams/testing';
import { controllerCost } from './controller-cost.ts';
import { DistantStore } from './distant-store.ts';
import { printResult } from './result.ts';

export interface AecBenchOptions {
  readonly json: boolean;
}

const latenciesMs = [0, 1, 5, 23];
const inFlightLimits = [1, 100, 6000];
const warmUpMs = 400;
const measuredMs = 1200;

/**
 * What the asynchronous execution controller is for, and what it costs. First a keyed count whose every read takes the
 * state's latency: by Little's law it does in-flight ÷ latency records a second, unless the CPU bound (the same limit
 * without latency) is lower. Then the controller against a bare loop, all state at hand.
 */
export async function aec(options: AecBenchOptions): Promise<void> {
  const rates = new Map<string, number>();
  for (const inFlight of inFlightLimits) {
    let cpuBound = Number.POSITIVE_INFINITY;
    for (const latencyMs of latenciesMs) {
      const measured = await measure(latencyMs, inFlight);
      const { recordsPerSecond: rate } = measured;
      if (latencyMs === 0) cpuBound = rate;
      rates.set(`${inFlight}/${latencyMs}`, rate);
      const expected = Math.min(cpuBound, (inFlight * 1000) / latencyMs);
      printResult(
        {
          bench: 'aec',
          case: `latency=${latencyMs}ms in-flight=${inFlight}`,
          value: rate,
          unit: 'records/s',
          ...(latencyMs === 0
            ? {}
            : { baseline: 'min(CPU bound, in-flight ÷ latency)', ratio: rate / expected, expected }),
          latencyMeasuredMs: measured.latencyMs,
          readShare: measured.readShare,
        },
        options.json,
      );
    }
  }
  const gain = (rates.get('6000/23') as number) / (rates.get('1/23') as number);
  printResult(
    {
      bench: 'aec',
      case: 'asynchronous / synchronous at 23 ms',
      value: gain,
      unit: '×',
      baseline: 'in-flight=1',
      ratio: gain,
    },
    options.json,
  );
  for (const result of await controllerCost()) printResult(result, options.json);
}

interface Measured {
  readonly recordsPerSecond: number;
  /** As the store saw it, the event loop's delay included. */
  readonly latencyMs: number;
  /** Reads for each record. */
  readonly readShare: number;
}

/** One slot in this process: source, exchange by key, one count in keyed state; every record has a key of its own. */
async function measure(latencyMs: number, inFlightLimit: number): Promise<Measured> {
  const store = new DistantStore(latencyMs, clock);
  let counted = 0;
  const graph = buildGraph(
    job('aec', (flow) => {
      flow
        .from(generator({ record: (i) => i, codec: int64 }), { uid: 'numbers' })
        .keyBy((n) => n)
        .process({
          uid: 'counts',
          state: { count: value(int64) },
          output: int64,
          onRecord: async (_n, ctx) => {
            ctx.state.count.set(((await ctx.state.count.get()) ?? 0) + 1);
            counted++;
          },
        })
        .to(discard());
    }),
  );
  const settings = { inFlightLimit, workingSetBytes: 8 << 20 };
  const cluster = await LocalCluster.start({ graph: () => graph, store, parallelism: 1, settings });
  cluster.done.catch(() => undefined);
  await sleep(warmUpMs + 2 * latencyMs);
  const start = { counted, reads: store.reads, waitedMs: store.waitedMs, atMs: performance.now() };
  await sleep(measuredMs);
  const ms = performance.now() - start.atMs;
  const records = counted - start.counted;
  const reads = store.reads - start.reads;
  await cluster.kill();
  await store.close();
  return {
    recordsPerSecond: (records * 1000) / ms,
    latencyMs: (store.waitedMs - start.waitedMs) / reads,
    readShare: reads / records,
  };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
