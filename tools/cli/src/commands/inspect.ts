import { connectMillrace, type MillraceClient } from '@millrace/client';
import { formatBytes, formatTable } from '../format.ts';
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
    const rows = all.map((job) => [job.id, job.job, job.state, job.startedAt, job.workflowId]);
    report.say(formatTable([['ID', 'JOB', 'STATE', 'STARTED', 'WORKFLOW'], ...rows]), {});
  });
}

/** `millrace status JOB` */
export function status(cluster: ClusterLocation, id: string, report: Report): Promise<void> {
  return withClient(cluster, async (client) => {
    const handle = client.job(id);
    const job = await handle.status();
    const rounds = await handle.rounds();
    const live = await fetchLiveFigures(cluster.console, id);
    if (report.json) return report.say('', { ...job, rounds, live: live ?? null });
    report.say(
      [
        `job          ${job.id} (${job.job})`,
        `state        ${job.state} — ${job.details}`,
        `generation   ${job.generation}, parallelism ${job.parallelism}, failures ${job.failures}`,
        ...(job.lastFailure === null ? [] : [`last failure ${job.lastFailure}`]),
        '',
        formatTable([
          ['ROUND', 'STATE', 'MS', 'BYTES PUT', 'LINKED', 'WORKFLOW'],
          ...rounds.map((round) => [
            String(round.checkpoint),
            round.state,
            round.result === null ? '' : String(round.result.durationMs),
            round.result === null ? '' : formatBytes(round.result.bytesPut),
            round.result === null ? '' : formatBytes(round.result.bytesLinked),
            round.workflowId,
          ]),
        ]),
      ].join('\n'),
      {},
    );
  });
}

/** `millrace checkpoint JOB`: begins a round now. */
export function checkpoint(cluster: ClusterLocation, id: string, report: Report): Promise<void> {
  return withClient(cluster, async (client) => {
    const round = await client.job(id).checkpoint();
    report.say(`checkpoint ${round.checkpoint} registered in ${round.durationMs} ms, ${formatBytes(round.bytesPut)} put`, {
      ...round,
    });
  });
}

/** `millrace cancel JOB`: stops without a last checkpoint. */
export function cancel(cluster: ClusterLocation, id: string, report: Report): Promise<void> {
  return withClient(cluster, async (client) => {
    const handle = client.job(id);
    await handle.cancel();
    const end = await handle.result();
    report.say(`job ${id}: ${end.state}`, { id, state: end.state });
  });
}
