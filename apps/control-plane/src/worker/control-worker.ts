import { type Clock, isKind, type Random, sleep } from '@millrace/kernel';
import { controlQueue } from '@millrace/proto/control';
import type { Logger } from '@millrace/telemetry';
import { NativeConnection, Worker, type WorkerOptions } from '@temporalio/worker';
import type { ControlActivities } from '../activities/contract.ts';
import type { OperationActivities } from '../activities/operation-contract.ts';
import { requireSearchAttributes } from './search-attributes.ts';

export interface ControlWorkerOptions {
  readonly address: string;
  readonly namespace: string;
  readonly activities: ControlActivities & OperationActivities;
  readonly workflowBundle: { readonly code: string };
  /** Tracing: interceptors and sinks. */
  readonly tracing?: Pick<WorkerOptions, 'interceptors' | 'sinks'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

const backoffMaxMs = 5_000;

/**
 * The Temporal worker of a control plane. Any number may run; none keeps anything that another could not take over. It is
 * made anew, after a pause, when it ends by itself (Temporal away for long), until it is stopped.
 */
export class ControlWorker {
  readonly #options: ControlWorkerOptions;
  readonly #stop = new AbortController();
  #worker: Worker | undefined;
  #ended: Promise<void> | undefined;
  #polling = false;

  constructor(options: ControlWorkerOptions) {
    this.#options = options;
  }

  /** True while workflows and activities are being polled for. */
  get polling(): boolean {
    return this.#polling;
  }

  /**
   * Resolves when the worker polls for the first time; waits while Temporal is away. Rejects with what an operator has to
   * mend (kind `setup`).
   */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#ended ??= this.#keep(resolve).catch(reject);
    });
  }

  /** Finishes what runs (a few seconds at most) and leaves. Idempotent. */
  async stop(): Promise<void> {
    this.#stop.abort();
    if (this.#worker?.getState() === 'RUNNING') this.#worker.shutdown();
    await this.#ended;
  }

  async #keep(onReady: () => void): Promise<void> {
    const { clock, random, log } = this.#options;
    for (let failures = 0; !this.#stop.signal.aborted; failures++) {
      const startMs = clock.monotonicMs();
      try {
        await this.#once(onReady);
      } catch (error) {
        if (isKind(error, 'setup')) throw error;
        log.warn('worker ended; it starts again', { error: String(error) });
      }
      if (clock.monotonicMs() - startMs > 60_000) failures = 0;
      const waitMs = Math.min(backoffMaxMs, 100 * 2 ** Math.min(failures, 10)) * (0.5 + random.float() / 2);
      await sleep(clock, waitMs, this.#stop.signal).catch(() => undefined);
    }
  }

  async #once(onReady: () => void): Promise<void> {
    const { address, namespace, activities, workflowBundle, tracing } = this.#options;
    const connection = await NativeConnection.connect({ address });
    try {
      await requireSearchAttributes(connection, namespace);
      const worker = await Worker.create({
        ...tracing,
        connection,
        namespace,
        taskQueue: controlQueue,
        workflowBundle,
        activities,
        // The next control plane takes over a workflow of a dead one after this long.
        stickyQueueScheduleToStartTimeout: '1s',
        shutdownGraceTime: '1s',
        shutdownForceTime: '5s',
        maxHeartbeatThrottleInterval: '1s',
        maxConcurrentActivityTaskExecutions: 500,
      });
      this.#worker = worker;
      const running = worker.run();
      if (this.#stop.signal.aborted) worker.shutdown();
      this.#polling = true;
      onReady();
      await running;
    } finally {
      this.#polling = false;
      this.#worker = undefined;
      await connection.close();
    }
  }
}
