import type { Clock } from '@millrace/kernel';
import type { Metrics } from '@millrace/telemetry';
import type { FileRef } from '@millrace/ufs';

type Outcome = 'done' | 'failed' | 'given-up';
type Done = (outcome: Outcome, made: ReadonlyArray<{ readonly file: FileRef }>) => void;

/** What a compactor counts. */
export class CompactorMetrics {
  readonly #clock: Clock;
  readonly #tasks;
  readonly #written;
  readonly #durations;
  #running = 0;

  constructor(metrics: Metrics, clock: Clock) {
    this.#clock = clock;
    this.#tasks = metrics.counter('millrace_compactor_tasks_total', 'Compactions by outcome');
    this.#written = metrics.counter('millrace_compactor_written_bytes_total', 'Bytes of the tables that were made');
    this.#durations = metrics.histogram('millrace_compactor_task_ms', 'Duration of a compaction, milliseconds');
    metrics.gauge('millrace_compactor_running', 'Compactions under way', () => this.#running);
  }

  /** The result is to be called at the end. */
  begin(): Done {
    const startMs = this.#clock.monotonicMs();
    this.#running++;
    return (outcome, made) => {
      this.#running--;
      this.#tasks.add(1, { outcome });
      this.#durations.record(this.#clock.monotonicMs() - startMs);
      for (const { file } of made) this.#written.add(file.sizeBytes);
    };
  }
}
