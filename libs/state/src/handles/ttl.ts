/** When the life of an entry starts anew: at each write, or at each read too. */
export type TtlRefresh = 'write' | 'read-and-write';

export interface TtlOptions {
  /** Life of an entry in milliseconds; 24 hours where none is named. */
  readonly durationMs?: number;
  /** Default `write`. */
  readonly refresh?: TtlRefresh;
}

/** A normalised time to live. */
export interface Ttl {
  readonly durationMs: number;
  readonly refresh: TtlRefresh;
}

const defaultDurationMs = 24 * 60 * 60 * 1000;

export function normaliseTtl(options: TtlOptions | undefined): Ttl | undefined {
  if (options === undefined) return undefined;
  return { durationMs: options.durationMs ?? defaultDurationMs, refresh: options.refresh ?? 'write' };
}
