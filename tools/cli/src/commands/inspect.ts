import { connectMillrace, type MillraceClient } from '@millrace/client';
import { isKind, MillraceError } from '@millrace/kernel';
import { formatBytes, formatCount, formatTable, formatTime } from '../format.ts';
import { fetchLiveFigures } from '../live-figures.ts';
import type { Report } from '../output.ts';
import type { ClusterLocation } from '../settings.ts';

async function withClient<T>(cluster: ClusterLocation, work: (client: MillraceClient) => Promise<T>): Promise<T> {
  const client = await connectMillrace(cluster);
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

/** `millrace jobs` */
export function jobs(cluster: ClusterLocation, report: Report): Promise<void> {
  return withClient(cluster, async (client) => {
    const all = await client.listJobs();
    if (report.json) {
      for (const job of all) report.say('', { ...job });
      return;
    }
    const rows = all.map((job) => [
      job.id,
      job.job ?? '',
      job.state ?? '',
      String(job.generation ?? ''),
      String(job.parallelism ?? ''),
      formatTime(job.startedMs),
    ]);
    report.say(formatTable([['ID', 'JOB', 'STATE', 'GENERATION', 'PARALLELISM', 'STARTED (UTC)'], ...rows]), {});
  });
}

/** `millrace status JOB` */
export function status(cluster: ClusterLocation, id: string, report: Report): Promise<void> {
  return withClient(cluster, async (client) => {
    const handle = client.job(id);
    const job = await handle.status();
    const loop = await handle.loop();
    const live = await fetchLiveFigures(cluster.console, id);
    if (report.json) return report.say('', { ...job, loop: loop ?? null, live: live ?? null });
    const rounds = (loop?.recent ?? []).map((round) => [
      String(round.checkpoint),
      String(round.durationMs),
      formatBytes(round.bytesPut),
      formatBytes(round.bytesLinked),
      `${id}-checkpoint-${round.checkpoint}`,
    ]);
    const lines = [
      `job          ${job.id} (${job.job})`,
      `state        ${job.state} — ${job.details}`,
      `generation   ${job.generation}, parallelism ${job.parallelism}, failures ${job.failures}`,
    ];
    if (job.lastFailure !== null) lines.push(`last failure ${job.lastFailure}`);
    if (live !== undefined) {
      lines.push(`records      ${formatCount(live.recordsRead)} read, watermark ${formatTime(live.watermarkMs)}`);
    }
    if (loop !== undefined) {
      const flight = loop.inFlight === null ? '' : `, round ${loop.inFlight} in flight`;
      lines.push(`rounds       ${loop.roundsDone} done, ${loop.roundsFailed} failed${flight}`);
    }
    if (rounds.length > 0) {
      lines.push('', formatTable([['ROUND', 'MS', 'BYTES PUT', 'LINKED', 'WORKFLOW'], ...rounds]));
    }
    report.say(lines.join('\n'), {});
  });
}

const checkpointTimeoutMs = 120_000;

/** `millrace checkpoint JOB`: begins a round now and waits until a round that began after it is registered. */
export function checkpoint(cluster: ClusterLocation, id: string, report: Report): Promise<void> {
  return withClient(cluster, async (client) => {
    const handle = client.job(id);
    const before = await handle.loop();
    const newest = Math.max(before?.inFlight ?? 0, before?.recent.at(-1)?.checkpoint ?? 0);
    await handle.checkpointNow();
    const deadline = performance.now() + checkpointTimeoutMs;
    while (performance.now() < deadline) {
      const round = (await handle.rounds()).find((candidate) => candidate.checkpoint > newest);
      if (round !== undefined) {
        const size = formatBytes(round.bytesPut);
        report.say(`checkpoint ${round.checkpoint} registered in ${round.durationMs} ms, ${size} put`, { ...round });
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new MillraceError(
      'checkpoint-timeout',
      `No checkpoint of job "${id}" was registered within ${checkpointTimeoutMs / 1000} s. \`millrace status ${id}\` shows its rounds.`,
    );
  });
}

/** `millrace cancel JOB`: stops without a last checkpoint. */
export function cancel(cluster: ClusterLocation, id: string, report: Report): Promise<void> {
  return withClient(cluster, async (client) => {
    const handle = client.job(id);
    await handle.cancel();
    const state = await handle.result().then(
      (end) => end.state,
      (error: unknown) => {
        if (isKind(error, 'cancelled')) return 'cancelled';
        throw error;
      },
    );
    report.say(`job ${id}: ${state}`, { id, state });
  });
}
