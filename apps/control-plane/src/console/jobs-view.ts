import { connectMillrace, type JobSummary, type MillraceClient } from '@millrace/client';
import { isKind } from '@millrace/kernel';
import type { AttemptPlan, JobRecord, JobStatus, LoopStatus } from '@millrace/proto/control';
import type { RunnerClients } from '../activities/runner-clients.ts';
import type { ControlStorage } from '../storage/control-storage.ts';
import { askLive, type LiveView } from './live.ts';

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
  readonly runners: RunnerClients;
}

/** Plans remembered, so that live figures go on while Temporal is away. */
const plansMax = 1000;

/** Jobs as read from Temporal and from the DFS, for the console. Connects when first asked, again after a failure. */
export class JobsView {
  readonly #options: JobsViewOptions;
  #client: Promise<MillraceClient> | undefined;
  readonly #plans = new Map<string, AttemptPlan>();

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

  /** Live figures from the runners; undefined while no attempt runs. Rejects with `job-not-found`. */
  async live(id: string): Promise<LiveView | undefined> {
    const plan = await this.#planOf(id);
    return plan === undefined ? undefined : await askLive(this.#options.runners, plan);
  }

  async close(): Promise<void> {
    const client = await this.#client?.catch(() => undefined);
    await client?.close();
  }

  async #planOf(id: string): Promise<AttemptPlan | undefined> {
    try {
      const { plan } = await this.#with((client) => client.job(id).status());
      this.#plans.delete(id);
      if (plan === null) return undefined;
      this.#plans.set(id, plan);
      if (this.#plans.size > plansMax) this.#plans.delete(this.#plans.keys().next().value as string);
      return plan;
    } catch (error) {
      const known = this.#plans.get(id);
      if (known !== undefined && (isKind(error, 'setup') || isKind(error, 'retry'))) return known;
      throw error;
    }
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
