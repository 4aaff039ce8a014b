import { connectMillrace, type MillraceClient, type OperationHandle } from '@millrace/client';
import type { OperationStatus } from '@millrace/proto';
import { formatBytes, formatTable, formatTime } from '../format.ts';
import type { Report } from '../output.ts';
import type { ClusterLocation } from '../settings.ts';

const pollMs = 200;

export interface Operation<T> {
  readonly start: (client: MillraceClient) => Promise<OperationHandle<T>>;
  /** The end in words. */
  readonly done: (result: T) => string;
}

/** Carries an operation out and shows its steps; Ctrl-C ends the watching, not the operation. */
export async function operate<T extends object>(
  cluster: ClusterLocation,
  operation: Operation<T>,
  report: Report,
): Promise<void> {
  const client = await connectMillrace(cluster);
  try {
    const handle = await operation.start(client);
    const result = await watched(handle, report);
    report.say(operation.done(result), { ...(result as Readonly<Record<string, unknown>>) });
  } finally {
    await client.close();
  }
}

async function watched<T>(handle: OperationHandle<T>, report: Report): Promise<T> {
  let told = 0;
  const tell = async (): Promise<void> => {
    const steps: readonly OperationStatus[] = await handle.steps().catch(() => []);
    for (const step of steps.slice(told)) report.note(`${step.phase}: ${step.details}`);
    told = Math.max(told, steps.length);
  };
  let isOver = false;
  const result = handle.result().finally(() => {
    isOver = true;
  });
  result.catch(() => undefined);
  while (!isOver) {
    await Promise.race([result.catch(() => undefined), new Promise((resolve) => setTimeout(resolve, pollMs))]);
    await tell();
  }
  return await result;
}

/** `millrace checkpoints ID` */
export async function checkpoints(cluster: ClusterLocation, id: string, report: Report): Promise<void> {
  const client = await connectMillrace(cluster);
  try {
    const list = await client.checkpoints(id);
    if (report.json) {
      for (const one of list.checkpoints) report.say('', { ...one });
      return;
    }
    const rows = list.checkpoints.map((one) => [
      String(one.checkpoint),
      one.savepoints.join(', '),
      formatTime(one.createdMs),
      String(one.parallelism),
      formatBytes(one.bytesPut),
      formatBytes(one.bytesLinked),
      one.retained ? '' : 'kept for the user',
    ]);
    const head = ['CHECKPOINT', 'SAVEPOINT', 'TAKEN (UTC)', 'PARALLELISM', 'BYTES PUT', 'LINKED', ''];
    report.say(formatTable([head, ...rows]), {});
  } finally {
    await client.close();
  }
}
