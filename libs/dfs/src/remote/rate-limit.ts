import { type Clock, MillraceError, sleep } from '@millrace/kernel';

export interface RateLimitOptions {
  readonly clock: Clock;
  /** Undefined: no limit. */
  readonly requestsPerSecond?: number | undefined;
  /** Sent and asked for, together. Undefined: no limit. */
  readonly bytesPerSecond?: number | undefined;
  /** Who would wait longer than this is refused with `dfs-throttled`. Default 60,000. */
  readonly waitMaxMs?: number;
}

/** What may pass at once after a time of quiet. */
const burstMs = 1000;

/**
 * What this client allows itself, so that it does not run into the limit of a shared store. Generic cell rate
 * algorithm (ITU-T I.371): for each rate the time at which all that was let through is paid for; one goes through
 * while that lies less than a burst ahead, and pays afterwards, so that something larger than a burst passes too.
 */
export class RateLimit {
  /** Milliseconds that requests have waited here. */
  waitedMs = 0;
  readonly #clock: Clock;
  readonly #msPerRequest: number;
  readonly #msPerByte: number;
  readonly #waitMaxMs: number;
  #requestsPaidAtMs = Number.NEGATIVE_INFINITY;
  #bytesPaidAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: RateLimitOptions) {
    this.#clock = options.clock;
    this.#msPerRequest = 1000 / (options.requestsPerSecond ?? Number.POSITIVE_INFINITY);
    this.#msPerByte = 1000 / (options.bytesPerSecond ?? Number.POSITIVE_INFINITY);
    this.#waitMaxMs = options.waitMaxMs ?? 60_000;
  }

  /** One request of this many bytes: nothing when it may go at once, else a promise. In order of arrival. */
  take(sizeBytes: number): void | Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    const startMs = nowMs - burstMs;
    const requestsAtMs = Math.max(this.#requestsPaidAtMs, startMs);
    const bytesAtMs = Math.max(this.#bytesPaidAtMs, startMs);
    const waitMs = Math.max(requestsAtMs, bytesAtMs) - nowMs;
    if (waitMs > this.#waitMaxMs) {
      throw new MillraceError(
        'dfs-throttled',
        `the rate limit of this client would hold a request back for ${Math.round(waitMs / 1000)} s; raise requestsPerSecond or bytesPerSecond in the URI of the file system`,
      );
    }
    this.#requestsPaidAtMs = requestsAtMs + this.#msPerRequest;
    this.#bytesPaidAtMs = bytesAtMs + this.#msPerByte * sizeBytes;
    if (waitMs <= 0) return undefined;
    this.waitedMs += waitMs;
    return sleep(this.#clock, waitMs);
  }

  /** Bytes of an answer whose size was not known before: they are paid for by those that come later. */
  charge(sizeBytes: number): void {
    this.#bytesPaidAtMs =
      Math.max(this.#bytesPaidAtMs, this.#clock.monotonicMs() - burstMs) + this.#msPerByte * sizeBytes;
  }
}
