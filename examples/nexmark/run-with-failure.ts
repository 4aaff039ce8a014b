/*
 * Runs a query through a failure: real slots in this process, a checkpoint, more events, a crash in the middle, a restore
 * at another parallelism, a second checkpoint, the end.
 */
import { buildGraph, type Job, loadJob } from '@millrace/streams';
import { LocalCluster, MemoryStateStore } from '@millrace/streams/testing';
import type { SiteSettings } from './expected/site.ts';

export interface FailureRun extends SiteSettings {
  readonly query: string;
  readonly mode: 'aligned' | 'unaligned';
  readonly output: string;
}

export interface FailureRunEnd {
  /** Events that had been read at the checkpoint that was restored. */
  readonly checkpointAt: number;
  /** Events that were read before the crash. */
  readonly crashAt: number;
  /** Bytes that barriers overtook and that the restore replayed. */
  readonly overtakenBytes: number;
}

/** The job of a query, by its name: `q5`. */
export async function queryJob(query: string): Promise<Job> {
  const path = new URL(`./${query}.ts`, import.meta.url).href;
  return loadJob(await import(path), path);
}

export async function runWithFailure({ query, mode, ...options }: FailureRun): Promise<FailureRunEnd> {
  const job = await queryJob(query);
  const { events } = options;
  const common = {
    store: new MemoryStateStore(),
    job: job.name,
    overtakeAfterMs: mode === 'unaligned' ? 0 : undefined,
    // Small windows: the sources cannot run far ahead, and barriers find something to overtake.
    settings: { inFlightLimit: 500, workingSetBytes: 4 << 20, frameBytes: 4096, channelWindowBytes: 16 * 1024 },
  };
  const first = await LocalCluster.start({
    ...common,
    // At most 3 of 10 events at a time: quick queries, too, have something left to read after the checkpoint.
    graph: () => buildGraph(job, { ...options, recordsPerSecond: events * 3 }),
    parallelism: 2,
    generation: 1,
  });
  await untilRead(first, events * 0.3);
  const from = await first.checkpoint();
  await first.complete(from);
  await untilRead(first, events * 0.5);
  const crashAt = read(first);
  await first.kill();
  await first.done.catch(() => undefined);

  const second = await LocalCluster.start({
    ...common,
    graph: () => buildGraph(job, options),
    parallelism: 3,
    generation: 2,
    from,
  });
  await untilRead(second, events * 0.3);
  await second.complete(await second.checkpoint());
  await second.finish();
  const inFlight = from.operators.flatMap((part) => part.inFlight?.channels ?? []);
  const checkpointAt = events - read(second);
  return { checkpointAt, crashAt, overtakenBytes: inFlight.reduce((sum, { length }) => sum + length, 0) };
}

function read(cluster: LocalCluster): number {
  return cluster.stats().reduce((sum, slot) => sum + slot.recordsIn, 0);
}

async function untilRead(cluster: LocalCluster, events: number): Promise<void> {
  let failed = false;
  cluster.done.catch(() => (failed = true));
  const over = (): boolean => failed || cluster.stats().every((slot) => slot.ended);
  while (read(cluster) < events && !over()) await new Promise((resolve) => setImmediate(resolve));
  if (failed) await cluster.done;
}
