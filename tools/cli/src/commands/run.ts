import { connectMillrace, type MillraceClient } from '@millrace/client';
import type { JobInput } from '@millrace/proto';
import type { Report } from '../output.ts';
import type { ClusterLocation } from '../settings.ts';
import { requireFinished, watchJob } from '../watch-job.ts';
import { type EmbeddedOptions, outputOf, startOrAttach, withStack } from './dev.ts';

/** `millrace run`: runs a job to its end, on the cluster when there is one, else on an embedded stack of its own. */
export async function run(
  job: JobInput,
  cluster: ClusterLocation | undefined,
  embedded: EmbeddedOptions,
): Promise<void> {
  const { report } = embedded;
  if (cluster === undefined) {
    await withStack(embedded, (stack, client, signal) => runToEnd(client, job, stack.console, report, signal));
    return;
  }
  report.note(`Running on the cluster at ${cluster.address}.`);
  const client = await connectMillrace(cluster);
  const interrupt = new AbortController();
  process.once('SIGINT', () => interrupt.abort(new Error('interrupted')));
  try {
    await runToEnd(client, job, cluster.console, report, interrupt.signal);
  } finally {
    await client.close();
  }
}

async function runToEnd(
  client: MillraceClient,
  job: JobInput,
  console: string | undefined,
  report: Report,
  signal: AbortSignal,
): Promise<void> {
  const handle = await startOrAttach(client, job, report);
  const status = await watchJob({ handle, console, report, signal });
  requireFinished(status);
  const output = outputOf(job);
  report.say(`Job ${status.id} finished.${output === undefined ? '' : ` Output: ${output}`}`, {
    event: 'finished',
    id: status.id,
    output: output ?? null,
  });
}
