import { connectMillrace, type JobSummary, type MillraceClient } from '@millrace/client';
import { isKind } from '@millrace/kernel';
import type { JobRecord, JobStatus, LoopStatus } from '@millrace/proto/control';
import type { ControlStorage } from '../storage/control-storage.ts';

/** Everything that the console shows of one job. */
export interface JobView {
  readonly status: JobStatus;
  readonly loop: LoopStatus | null;
  readonly record: JobRecord | null;
}

export interface JobsViewOptions {
  readonly address: string;
  readonly namespace: string;
  readonly storage: ControlStorage;
}

/** Jobs as read from Temporal and from the DFS, for the console. Connects when first asked, again after a failure. */
export class JobsView {
  readonly #options: JobsViewOptions;
  #client: Promise<MillraceClient> | undefined;

  constructor(options: JobsViewOptions) {
    this.#options = options;
  }

  list(): Promise<readonly JobSummary[]> {
    return this.#with((client) => client.listJobs());
  }

  /** Rejects with `job-not-found`. */
  get(id: string): Promise<JobView> {
    return this.#with(async (client) => {
      const handle = client.job(id);
      const status = await handle.status();
      const [loop, record] = await Promise.all([handle.loop(), this.#options.storage.readRecord(status.id)]);
      return { status, loop: loop ?? null, record: record ?? null };
    });
  }

  async close(): Promise<void> {
    const client = await this.#client?.catch(() => undefined);
    await client?.close();
  }

  async #with<T>(work: (client: MillraceClient) => Promise<T>): Promise<T> {
    const { address, namespace } = this.#options;
    this.#client ??= connectMillrace({ address, namespace, timeoutMs: 3_000 });
    try {
      return await work(await this.#client);
    } catch (error) {
      if (isKind(error, 'setup')) {
        void this.close();
        this.#client = undefined;
      }
      throw error;
    }
  }
}
