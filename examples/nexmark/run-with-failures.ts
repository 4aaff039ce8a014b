/*
 * Runs a query through failures, in real slots in this process: for each mode of checkpoint a part of the events, a
 * checkpoint, more events, a crash; then, after a last restore, the rest. Each attempt has another parallelism.
 */
import { buildGraph, type Job, loadJob } from '@millrace/streams';
import { type ClusterCheckpoint, LocalCluster, type LocalClusterOptions } from '@millrace/streams/testing';
import type { SiteSettings } from './expected/site.ts';

export type CheckpointMode = 'aligned' | 'unaligned';

export interface FailureRun extends SiteSettings {
  readonly query: string;
  /** An attempt that crashes for each. */
  readonly modes: readonly CheckpointMode[];
  readonly output: string;
}

export interface FailureRunEnd {
  /** Events before the checkpoint from which the last attempt went on. */
  readonly restoredAt: number;
  /** By attempt that crashed: bytes that barriers overtook, which the next attempt replayed. */
  readonly overtakenBytes: readonly number[];
}

/** The job of a query, by its name: `q5`. */
export async function queryJob(query: string): Promise<Job> {
  const path = new URL(`./${query}.ts`, import.meta.url).href;
  return loadJob(await import(path), path);
}

const parallelisms = [2, 3, 1];

/** `storeOf` opens the state for an attempt. */
export async function runWithFailures(
  { query, modes, ...options }: FailureRun,
  storeOf: (generation: number) => Promise<LocalClusterOptions['store']>,
): Promise<FailureRunEnd> {
  const job = await queryJob(query);
  const { events } = options;
  const overtakenBytes: number[] = [];
  let from: ClusterCheckpoint | undefined;
  const start = async (attempt: number, recordsPerSecond?: number): Promise<LocalCluster> =>
    LocalCluster.start({
      graph: () => buildGraph(job, { ...options, recordsPerSecond }),
      store: await storeOf(attempt + 1),
      job: job.name,
      generation: attempt + 1,
      parallelism: parallelisms[attempt % parallelisms.length] as number,
      from,
      // Small windows: barriers find something to overtake.
      settings: { inFlightLimit: 500, workingSetBytes: 8 << 20, frameBytes: 4096, channelWindowBytes: 16 * 1024 },
    });

  for (const [attempt, mode] of modes.entries()) {
    // At most a fifth of the events at a time: quick queries, too, have something left to read after the checkpoints.
    const cluster = await start(attempt, events * 2);
    await untilRead(cluster, events * 0.2);
    from = await cluster.checkpoint(mode === 'unaligned' ? 0 : undefined);
    await cluster.complete(from);
    await untilRead(cluster, events * 0.3);
    await cluster.kill();
    await cluster.done.catch(() => undefined);
    const inFlight = from.operators.flatMap((part) => part.inFlight?.channels ?? []);
    overtakenBytes.push(inFlight.reduce((sum, { length }) => sum + length, 0));
  }
  const last = await start(modes.length);
  await last.finish();
  return { restoredAt: events - read(last), overtakenBytes };
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
