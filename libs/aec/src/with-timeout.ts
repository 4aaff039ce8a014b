import { type Clock, MillraceError } from '@millrace/kernel';

export interface TimeoutOptions<T> {
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Names the work in the error. */
  readonly what?: string;
  /** Told to stop when the time is over. */
  readonly abort?: AbortController;
  /** The result in place of the error; may throw an error of its own. */
  onTimeout?(): T | Promise<T>;
}

/**
 * `work`, or `aec-timeout` when it takes longer. Settles once: what the work does after its time, also that it
 * fails, is ignored. For handlers that call external services.
 */
export function withTimeout<T>(work: Promise<T>, options: TimeoutOptions<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = options.clock.schedule(options.timeoutMs, () => {
      const error = timeoutError(options);
      // Settled first: an abort makes the work reject, and that is no longer of interest.
      try {
        if (options.onTimeout === undefined) reject(error);
        else resolve(options.onTimeout());
      } catch (thrown) {
        reject(thrown as Error);
      }
      options.abort?.abort(error);
    });
    work.then(
      (value) => {
        timer.cancel();
        resolve(value);
      },
      (error: Error) => {
        timer.cancel();
        reject(error);
      },
    );
  });
}

function timeoutError<T>({ what = 'a call from a handler', timeoutMs }: TimeoutOptions<T>): MillraceError {
  return new MillraceError('aec-timeout', `${what} took longer than ${timeoutMs} ms`, { details: { timeoutMs } });
}
