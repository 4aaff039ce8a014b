import { connectMillrace, type MillraceClient } from '@millrace/client';
import { MillraceError } from '@millrace/kernel';
import type { JobInput } from '@millrace/proto';
import type { Report } from '../output.ts';
import { Stack, type StackOptions } from '../stack/stack.ts';
import { requireFinished, watchJob } from '../watch-job.ts';

export interface EmbeddedOptions extends Omit<StackOptions, 'onProgress'> {
  readonly report: Report;
}

/** Runs `work` on an embedded stack; Ctrl-C and SIGTERM abort `signal`, and the stack is stopped whatever happens. */
export async function withStack<T>(
  options: EmbeddedOptions,
  work: (stack: Stack, client: MillraceClient, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { report } = options;
  const interrupt = new AbortController();
  const stack = new Stack({ ...options, onProgress: (message) => report.note(message) });
  const onSignal = (): void => {
    report.note('Stopping; the job resumes from its last checkpoint at the next start.');
    interrupt.abort(new MillraceError('cancelled', 'Interrupted.'));
  };
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  try {
    report.note('Starting the embedded stack (Temporal server, control plane, task-runners) …');
    await stack.start();
    interrupt.signal.throwIfAborted();
    const client = await connectMillrace({ address: stack.temporalAddress, namespace: 'default' });
    try {
      return await work(stack, client, interrupt.signal);
    } finally {
      await client.close();
    }
  } finally {
    await stack.stop();
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

/** `millrace dev`: the embedded stack, and a job on it when one is named. To be stopped is a good end. */
export async function dev(options: EmbeddedOptions, job: JobInput | undefined, keep: boolean): Promise<void> {
  await withStack(options, async (stack, client, signal) => {
    sayWhereToLook(stack, options.report);
    try {
      if (job !== undefined) await runOn(stack, client, { job, report: options.report, signal, keep });
      if (job !== undefined && !keep) return;
      await untilAborted(signal);
    } catch (error) {
      if (!signal.aborted || error !== signal.reason) throw error;
    }
  });
}

interface RunOn {
  readonly job: JobInput;
  readonly report: Report;
  readonly signal: AbortSignal;
  readonly keep: boolean;
}

async function runOn(stack: Stack, client: MillraceClient, { job, report, signal, keep }: RunOn): Promise<void> {
  const handle = await startOrAttach(client, job, report);
  const status = await watchJob({ handle, console: stack.console, report, signal });
  requireFinished(status);
  const output = outputOf(job);
  report.say(`Finished.${output === undefined ? '' : ` Output: ${output}`}`, {
    event: 'finished',
    id: status.id,
    output: output ?? null,
  });
  if (keep) report.note('The stack stays up; press Ctrl-C to stop it.');
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

export function outputOf(job: JobInput): string | undefined {
  const output = job.options?.output;
  return typeof output === 'string' ? output : undefined;
}

/** Starts the job, or attaches to it when it runs already: after a restart of the stack its workflow is still there. */
export async function startOrAttach(client: MillraceClient, job: JobInput, report: Report) {
  try {
    return await client.startJob(job);
  } catch (error) {
    if (!(error instanceof MillraceError) || error.code !== 'job-already-running') throw error;
    report.note(`Job ${job.id ?? job.job} is running already; it goes on from its last checkpoint.`);
    return client.job(job.id ?? job.job);
  }
}

function sayWhereToLook(stack: Stack, report: Report): void {
  report.say(
    `\n  Temporal Web UI   ${stack.temporalUi}\n  Console           ${stack.console}\n  Temporal address  ${stack.temporalAddress}\n  Data and logs     ${stack.options.dataDir}\n`,
    {
      event: 'stack',
      temporalUi: stack.temporalUi,
      console: stack.console,
      temporalAddress: stack.temporalAddress,
      dataDir: stack.options.dataDir,
      pids: stack.pids,
    },
  );
}
