import type { Clock } from '@millrace/kernel';
import type { Telemetry } from '@millrace/telemetry';
import type { ControlStorage } from './control-storage.ts';

export interface SweeperOptions {
  readonly storage: Pick<ControlStorage, 'sweep'>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Younger objects are left alone. Default one hour. */
  readonly graceMs?: number;
  /** The least time between two sweeps of one job by this process. Default ten minutes. */
  readonly intervalMs?: number;
}

/** Jobs whose last sweep is remembered, and jobs waiting for one. */
const jobsMax = 10_000;

/**
 * Sweeps jobs in the background, one after the other, whenever something of theirs happened (a generation was claimed,
 * a checkpoint registered, the job finished). It never blocks or fails what asks: a sweep that fails is logged and
 * comes again. What it remembers may be lost; then a job is swept once more.
 */
export class Sweeper {
  readonly #options: Required<SweeperOptions>;
  readonly #lastMs = new Map<string, number>();
  readonly #waiting = new Set<string>();
  #work: Promise<void> | undefined;
  #closed = false;

  constructor(options: SweeperOptions) {
    this.#options = { graceMs: 3_600_000, intervalMs: 600_000, ...options };
  }

  /** Asks for a sweep of the job, unless it was swept a short time ago. */
  request(id: string): void {
    const { clock, intervalMs } = this.#options;
    const last = this.#lastMs.get(id);
    if (this.#closed || this.#waiting.size >= jobsMax) return;
    if (last !== undefined && clock.monotonicMs() - last < intervalMs) return;
    this.#waiting.add(id);
    this.#work ??= this.#untilIdle().finally(() => {
      this.#work = undefined;
    });
  }

  /** Resolves when nothing waits or runs. */
  async idle(): Promise<void> {
    while (this.#work !== undefined) await this.#work;
  }

  /** Begins no other sweep and waits for the one that runs. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#waiting.clear();
    await this.idle();
  }

  async #untilIdle(): Promise<void> {
    for (const id of this.#waiting) {
      this.#waiting.delete(id);
      this.#remember(id);
      await this.#sweep(id);
    }
  }

  async #sweep(id: string): Promise<void> {
    const { storage, graceMs, telemetry } = this.#options;
    try {
      const report = await storage.sweep(id, graceMs);
      if (report === undefined || report.filesRemoved + report.objectsRemoved + report.failed === 0) return;
      const { filesRemoved, objectsRemoved, bytesFreed, failed } = report;
      telemetry.log.info('swept what failed attempts left', { id, filesRemoved, objectsRemoved, bytesFreed, failed });
    } catch (error) {
      telemetry.log.warn('sweep failed; the next one tries again', { id, error });
    }
  }

  #remember(id: string): void {
    this.#lastMs.delete(id);
    this.#lastMs.set(id, this.#options.clock.monotonicMs());
    const oldest = this.#lastMs.keys().next().value;
    if (this.#lastMs.size > jobsMax && oldest !== undefined) this.#lastMs.delete(oldest);
  }
}
