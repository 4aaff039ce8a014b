import { type Clock, type Random, sleep } from '@millrace/kernel';
import type { Logger } from '@millrace/telemetry';
import { NativeConnection, Worker, type WorkerOptions } from '@temporalio/worker';

export interface KeptWorkerOptions {
  readonly address: string;
  readonly namespace: string;
  readonly identity: string;
  readonly worker: Omit<WorkerOptions, 'connection' | 'namespace' | 'identity'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

const backoffMaxMs = 5_000;

/** A Temporal worker that is made anew, after a pause, whenever it cannot be made or ends by itself. */
export class KeptWorker {
  readonly #options: KeptWorkerOptions;
  readonly #stop = new AbortController();
  readonly #ready: Promise<void>;
  #isReady: () => void = () => undefined;
  #worker: Worker | undefined;
  #ended: Promise<void> | undefined;

  constructor(options: KeptWorkerOptions) {
    this.#options = options;
    this.#ready = new Promise((resolve) => {
      this.#isReady = resolve;
    });
  }

  start(): void {
    this.#ended ??= this.#keep();
  }

  /** Resolves when the worker polls for the first time. */
  ready(): Promise<void> {
    return this.#ready;
  }

  /** Finishes what runs and leaves. Idempotent. */
  async stop(): Promise<void> {
    this.#stop.abort();
    if (this.#worker?.getState() === 'RUNNING') this.#worker.shutdown();
    await this.#ended;
  }

  async #keep(): Promise<void> {
    const { clock, random, log, worker } = this.#options;
    for (let failures = 0; !this.#stop.signal.aborted; failures++) {
      const startMs = clock.monotonicMs();
      try {
        await this.#once();
      } catch (error) {
        log.warn('worker ended; it starts again', { taskQueue: worker.taskQueue, error: String(error) });
      }
      if (clock.monotonicMs() - startMs > 60_000) failures = 0;
      const waitMs = Math.min(backoffMaxMs, 100 * 2 ** Math.min(failures, 10)) * (0.5 + random.float() / 2);
      await sleep(clock, waitMs, this.#stop.signal).catch(() => undefined);
    }
  }

  async #once(): Promise<void> {
    const { address, namespace, identity, worker: options } = this.#options;
    const connection = await NativeConnection.connect({ address });
    try {
      const worker = await Worker.create({ ...options, connection, namespace, identity });
      this.#worker = worker;
      const running = worker.run();
      if (this.#stop.signal.aborted) worker.shutdown();
      this.#isReady();
      await running;
    } finally {
      this.#worker = undefined;
      await connection.close();
    }
  }
}
