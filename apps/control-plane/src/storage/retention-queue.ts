import type { Clock } from '@millrace/kernel';
import type { Telemetry } from '@millrace/telemetry';
import { forgotten, liveCheckpoints } from '../record/transitions.ts';
import type { ControlStorage } from './control-storage.ts';

export interface RetentionQueueOptions {
  readonly storage: Pick<ControlStorage, 'readRecord' | 'updateRecord' | 'collectRecord' | 'drop'>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** How long a job whose deletions fail is left alone. Default one minute. */
  readonly pauseMs?: number;
}

/** Whose round has committed. */
export interface CommittedRound {
  readonly id: string;
  readonly generation: number;
  readonly checkpoint: number;
}

/** Given-up checkpoints that one pass takes: more than a round adds, so that arrears shrink. */
const entriesPerPass = 8;
/** Jobs that are worked on together. */
const passesMax = 4;
/** Jobs waiting, and jobs remembered as failing. */
const jobsMax = 10_000;
/** Old versions of a job's record go once in so many rounds. */
const roundsPerCollection = 16;

/**
 * Deletes what committed rounds gave up, in the background, so that no commit ever waits for a deletion. The job's record
 * lists what is given up until it is gone; a pass deletes some of that, the newest first, so that what cannot be deleted
 * does not hold up the rest, and then takes it off the list. Crash order: delete, then forget; in between, the next pass
 * finds it gone. What fails is logged (and counted by the reaper) and left to later rounds, or to the sweep once the list
 * is full. All that this queue remembers may be lost.
 */
export class RetentionQueue {
  readonly #options: Required<RetentionQueueOptions>;
  readonly #waiting = new Map<string, CommittedRound>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #pausedUntilMs = new Map<string, number>();
  #closed = false;

  constructor(options: RetentionQueueOptions) {
    this.#options = { pauseMs: 60_000, ...options };
  }

  /** Asks for a pass over the job's given-up checkpoints. Never blocks or fails the caller. */
  request(round: CommittedRound): void {
    if (this.#closed || this.#waiting.size >= jobsMax) return;
    this.#waiting.set(round.id, round);
    this.#startPasses();
  }

  /** Resolves when nothing waits or runs. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values());
  }

  /** Begins no other pass and waits for those that run. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#waiting.clear();
    await this.idle();
  }

  #startPasses(): void {
    for (const [id, round] of this.#waiting) {
      if (this.#running.size >= passesMax) return;
      if (this.#running.has(id)) continue;
      this.#waiting.delete(id);
      if (this.#isPaused(id)) continue;
      const pass = this.#pass(round).finally(() => {
        this.#running.delete(id);
        this.#startPasses();
      });
      this.#running.set(id, pass);
    }
  }

  async #pass(round: CommittedRound): Promise<void> {
    const { storage, telemetry } = this.#options;
    const { id, generation, checkpoint } = round;
    try {
      if (checkpoint % roundsPerCollection === 0) await storage.collectRecord(id);
      const record = await storage.readRecord(id);
      if (record === undefined || record.generation !== generation || record.dropping.length === 0) return;
      const wanted = record.dropping.slice(-entriesPerPass).reverse();
      const gone = await storage.drop(id, wanted, liveCheckpoints(record));
      if (gone.length > 0) await storage.updateRecord(round, (current) => forgotten(current, round, gone));
      if (gone.length === wanted.length) return;
      const left = record.dropping.length - gone.length;
      telemetry.log.warn('some given-up checkpoints are not deleted yet; later rounds try again', { id, left });
      if (gone.length === 0) this.#pause(id);
    } catch (error) {
      telemetry.log.warn('retention failed; later rounds try again', { id, error });
      this.#pause(id);
    }
  }

  #isPaused(id: string): boolean {
    const untilMs = this.#pausedUntilMs.get(id);
    if (untilMs === undefined) return false;
    if (this.#options.clock.monotonicMs() < untilMs) return true;
    this.#pausedUntilMs.delete(id);
    return false;
  }

  #pause(id: string): void {
    this.#pausedUntilMs.delete(id);
    this.#pausedUntilMs.set(id, this.#options.clock.monotonicMs() + this.#options.pauseMs);
    const oldest = this.#pausedUntilMs.keys().next().value;
    if (this.#pausedUntilMs.size > jobsMax && oldest !== undefined) this.#pausedUntilMs.delete(oldest);
  }
}
