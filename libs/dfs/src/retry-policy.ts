import { type Clock, isKind, MillraceError, type Random, sleep } from '@millrace/kernel';

export interface RetryOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Attempts in all. Default 6. */
  readonly attemptsMax?: number;
  /** After this an attempt counts as failed and its late answer is ignored. Default 60,000. */
  readonly timeoutMs?: number;
  /** The longest pause after the first failure; doubles with each. Default 50. */
  readonly backoffMs?: number;
  /** Default 5,000. */
  readonly backoffMaxMs?: number;
  /** Told of every attempt that will be repeated. */
  readonly onRetry?: (operation: string, error: MillraceError) => void;
}

/** Tries again what failed with kind `retry`, a bounded number of times, with exponential back-off and full jitter. */
export class RetryPolicy {
  readonly #options: Required<RetryOptions>;

  constructor(options: RetryOptions) {
    this.#options = {
      attemptsMax: 6,
      timeoutMs: 60_000,
      backoffMs: 50,
      backoffMaxMs: 5_000,
      onRetry: () => undefined,
      ...options,
    };
  }

  /** `work` gets the number of its attempt, from 1. Rejects with the last failure, or the first that may not pass. */
  async run<T>(operation: string, work: (attempt: number) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.once(operation, () => work(attempt));
      } catch (error) {
        if (!isKind(error, 'retry') || attempt >= this.#options.attemptsMax) throw error;
        this.#options.onRetry(operation, error);
        await this.pause(attempt);
      }
    }
  }

  /** One attempt within the time limit. Work that cannot be stopped goes on unobserved. */
  once<T>(operation: string, work: () => Promise<T>): Promise<T> {
    const { clock, timeoutMs } = this.#options;
    return new Promise<T>((resolve, reject) => {
      const timer = clock.schedule(timeoutMs, () => {
        reject(
          new MillraceError('dfs-unavailable', `no answer within ${timeoutMs} ms: ${operation}`, {
            details: { operation, timeoutMs },
          }),
        );
      });
      work().then(
        (value) => {
          timer.cancel();
          resolve(value);
        },
        (error: unknown) => {
          timer.cancel();
          reject(error as Error);
        },
      );
    });
  }

  /** The pause after failed attempt number `attempt`. */
  async pause(attempt: number): Promise<void> {
    const { clock, random, backoffMs, backoffMaxMs } = this.#options;
    await sleep(clock, random.float() * Math.min(backoffMaxMs, backoffMs * 2 ** (attempt - 1)));
  }

  get attemptsMax(): number {
    return this.#options.attemptsMax;
  }

  get onRetry(): (operation: string, error: MillraceError) => void {
    return this.#options.onRetry;
  }
}
