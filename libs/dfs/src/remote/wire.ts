import { type Clock, MillraceError, type Random } from '@millrace/kernel';
import type { Telemetry } from '@millrace/telemetry';
import { RetryPolicy } from '../retry-policy.ts';
import { RateLimit } from './rate-limit.ts';
import { backstopMs, type RemoteSettings } from './remote-uri.ts';

export interface WireOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
}

/**
 * What every request of a remote driver goes through: the rate limit, the time limit (which aborts the request for
 * real, its answer's bytes included), and the count of requests as the store sees them.
 */
export class Wire {
  /** Requests sent, as the store counts them: an operation of the port may be several, or none. */
  requests = 0;
  readonly random: Random;
  readonly #options: WireOptions;
  readonly #settings: RemoteSettings;
  readonly #limit: RateLimit;
  readonly #retries: RetryPolicy;
  readonly #count: (operation: string) => void;
  readonly #waited: (ms: number) => void;

  constructor(settings: RemoteSettings, options: WireOptions) {
    const { metrics, log } = options.telemetry;
    this.random = options.random;
    this.#options = options;
    this.#settings = settings;
    this.#limit = new RateLimit({ ...settings, clock: options.clock });
    const requests = metrics.counter('millrace_dfs_wire_requests_total', 'HTTP requests sent to a remote file system.');
    const waited = metrics.counter(
      'millrace_dfs_limited_ms_total',
      'Time that requests to a remote file system waited for the rate limit of this client.',
    );
    const retries = metrics.counter(
      'millrace_dfs_retries_total',
      'Requests to the distributed file system that were repeated.',
    );
    this.#count = (operation) => requests.add(1, { operation });
    this.#waited = (ms) => waited.add(ms);
    this.#retries = new RetryPolicy({
      clock: options.clock,
      random: options.random,
      attemptsMax: settings.attempts,
      timeoutMs: backstopMs(settings),
      onRetry: (operation, error) => {
        retries.add(1, { code: error.code });
        log.warn('file system request failed and is repeated', { operation, error: error.message });
      },
    });
  }

  /** One request. `work` stops when the signal is aborted; it maps its own failures. */
  async request<T>(operation: string, sizeBytes: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const before = this.#limit.waitedMs;
    const turn = this.#limit.take(sizeBytes);
    if (turn !== undefined) {
      this.#waited(this.#limit.waitedMs - before);
      await turn;
    }
    this.requests++;
    this.#count(operation);
    const abort = new AbortController();
    const { timeoutMs } = this.#settings;
    const timer = this.#options.clock.schedule(timeoutMs, () => abort.abort());
    try {
      return await work(abort.signal);
    } catch (error) {
      if (!abort.signal.aborted) throw error;
      throw new MillraceError('dfs-unavailable', `no answer within ${timeoutMs} ms: ${operation}`, {
        details: { operation, timeoutMs },
        cause: error,
      });
    } finally {
      timer.cancel();
    }
  }

  /** Bytes of an answer whose size the request did not tell. */
  received(sizeBytes: number): void {
    this.#limit.charge(sizeBytes);
  }

  /** For the parts of a writer, which nobody above repeats. */
  retried<T>(operation: string, work: (attempt: number) => Promise<T>): Promise<T> {
    return this.#retries.run(operation, work);
  }
}
