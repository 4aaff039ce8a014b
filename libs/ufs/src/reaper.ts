import type { Dfs } from '@millrace/dfs';
import { type Clock, MillraceError, type Random, sleep } from '@millrace/kernel';
import type { Telemetry } from '@millrace/telemetry';

export interface ReaperOptions {
  readonly dfs: Dfs;
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
  /** Paths waiting; beyond that they are left to the sweep and counted. Default 100,000. */
  readonly queueMax?: number;
  /** Removals under way together. Default 4. */
  readonly concurrency?: number;
  /** Attempts for a path, on top of the retries of the Dfs. Default 3. */
  readonly attemptsMax?: number;
  /** The longest pause before another attempt; doubles with each. Default 1,000. */
  readonly backoffMs?: number;
}

/** What the reaper did so far. A failed or refused removal is a leak until the next sweep, never a danger. */
export interface ReaperStats {
  removed: number;
  failed: number;
  /** Not taken because the queue was full or the reaper closed. */
  refused: number;
}

export interface RemovalResult {
  readonly removed: readonly string[];
  readonly failed: readonly string[];
}

/**
 * The only code that deletes. Whoever calls it has the right to (the maker of a file that no snapshot names, the
 * job's retention, a sweep with proof); the reaper never asks why. Removal is idempotent, so it may be repeated after
 * a crash at any point. It never throws into its callers: what cannot be removed is counted, logged and left.
 */
export class Reaper {
  readonly stats: ReaperStats = { removed: 0, failed: 0, refused: 0 };
  readonly #options: Required<ReaperOptions>;
  readonly #queue: string[] = [];
  readonly #workers = new Set<Promise<void>>();
  readonly #stopGauges: Array<() => void>;
  #closed = false;

  constructor(options: ReaperOptions) {
    this.#options = { queueMax: 100_000, concurrency: 4, attemptsMax: 3, backoffMs: 1_000, ...options };
    const { metrics } = options.telemetry;
    this.#stopGauges = [
      metrics.gauge('millrace_reaper_queued', 'Files waiting for removal.', () => this.#queue.length),
      metrics.gauge('millrace_reaper_removed', 'Files removed.', () => this.stats.removed),
      metrics.gauge('millrace_reaper_failed', 'Removals given up, left to the sweep.', () => this.stats.failed),
      metrics.gauge('millrace_reaper_refused', 'Removals not taken on, left to the sweep.', () => this.stats.refused),
    ];
  }

  /** Removes `paths` in the background. */
  discard(paths: readonly string[]): void {
    for (const path of paths) {
      if (this.#closed || this.#queue.length >= this.#options.queueMax) this.stats.refused++;
      else this.#queue.push(path);
    }
    while (this.#workers.size < Math.min(this.#options.concurrency, this.#queue.length)) this.#startWorker();
  }

  /** Removes `paths` and tells the result; does not reject for failed removals. */
  async removeNow(paths: readonly string[]): Promise<RemovalResult> {
    const removed: string[] = [];
    const failed: string[] = [];
    const rest = [...paths].reverse();
    const work = async (): Promise<void> => {
      for (let path = rest.pop(); path !== undefined; path = rest.pop()) {
        ((await this.#remove(path)) ? removed : failed).push(path);
      }
    };
    await Promise.all(Array.from({ length: Math.min(this.#options.concurrency, paths.length) }, work));
    return { removed, failed };
  }

  /** Resolves when nothing is queued or under way. */
  async drain(): Promise<void> {
    while (this.#workers.size > 0) await Promise.all(this.#workers);
  }

  /** Takes no more and drains. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.drain();
    for (const stop of this.#stopGauges.splice(0)) stop();
  }

  #startWorker(): void {
    const worker = this.#workUntilEmpty().finally(() => this.#workers.delete(worker));
    this.#workers.add(worker);
  }

  async #workUntilEmpty(): Promise<void> {
    // The order of removal is of no account, and the end of an array is the cheap one.
    for (let path = this.#queue.pop(); path !== undefined; path = this.#queue.pop()) await this.#remove(path);
  }

  async #remove(path: string): Promise<boolean> {
    const { dfs, clock, random, telemetry, attemptsMax, backoffMs } = this.#options;
    for (let attempt = 1; ; attempt++) {
      try {
        await dfs.remove(path);
        this.stats.removed++;
        return true;
      } catch (error) {
        if (attempt >= attemptsMax) {
          this.stats.failed++;
          telemetry.log.warn('removal given up and left to the sweep', {
            path,
            error: MillraceError.from(error).message,
          });
          return false;
        }
        await sleep(clock, random.float() * backoffMs * 2 ** (attempt - 1));
      }
    }
  }
}
