import {
  controlQueue,
  type JobInput,
  type JobResult,
  type JobStatus,
  type LoopStatus,
  queries,
  workflowTypes,
} from '@millrace/proto';
import { Client, Connection, type WorkflowHandle } from '@temporalio/client';

/** Jobs as a test steers them, through Temporal's own client. */
export class Jobs {
  readonly client: Client;
  readonly #connection: Connection;

  constructor(address: string) {
    this.#connection = Connection.lazy({ address });
    this.client = new Client({ connection: this.#connection });
  }

  async start(input: JobInput): Promise<WorkflowHandle> {
    return await this.client.workflow.start(workflowTypes.job, {
      workflowId: input.id ?? input.job,
      taskQueue: controlQueue,
      args: [input],
    });
  }

  async status(id: string): Promise<JobStatus> {
    return await this.client.workflow.getHandle(id).query<JobStatus>(queries.status);
  }

  async loop(id: string): Promise<LoopStatus> {
    const { plan } = await this.status(id);
    if (plan === null) throw new Error('no attempt');
    return await this.client.workflow.getHandle(plan.checkpointLoopId).query<LoopStatus>(queries.status);
  }

  async result(id: string): Promise<JobResult> {
    return (await this.client.workflow.getHandle(id).result()) as JobResult;
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }
}

/** Resolves with the first value that `look` gives; what it throws counts as none. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
  timeoutMs = 60_000,
): Promise<T> {
  const endMs = Date.now() + timeoutMs;
  let last: unknown;
  while (Date.now() < endMs) {
    try {
      const found = await look();
      if (found !== undefined && found !== false) return found;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`not within ${timeoutMs} ms: ${what}`, { cause: last });
}
