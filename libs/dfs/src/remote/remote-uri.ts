import type { UriParameters } from '../uri-parameters.ts';

const mib = 1024 * 1024;

/** What every remote driver can be told in its URI. */
export interface RemoteSettings {
  /** Of one HTTP request, the bytes of its answer included. Default 30,000. */
  readonly timeoutMs: number;
  /** For a connection to come about. Default 5,000. */
  readonly connectTimeoutMs: number;
  /** Of one operation, in all. Default 6. */
  readonly attempts: number;
  /** Open at most, kept and used again. Default 64. */
  readonly connections: number;
  /** HTTP requests; undefined: no limit. */
  readonly requestsPerSecond: number | undefined;
  /** Undefined: no limit. */
  readonly bytesPerSecond: number | undefined;
  /** A file that is written piece by piece is sent in parts of this size, which its writer holds in memory. Default 8 MiB. */
  readonly partBytes: number;
}

export function remoteSettings(parameters: UriParameters): RemoteSettings {
  return {
    timeoutMs: parameters.integer('timeoutMs', 10, 3_600_000) ?? 30_000,
    connectTimeoutMs: parameters.integer('connectTimeoutMs', 10, 600_000) ?? 5_000,
    attempts: parameters.integer('attempts', 1, 100) ?? 6,
    connections: parameters.integer('connections', 1, 10_000) ?? 64,
    requestsPerSecond: parameters.integer('requestsPerSecond', 1, 1_000_000_000),
    bytesPerSecond: parameters.integer('bytesPerSecond', 1, Number.MAX_SAFE_INTEGER),
    // The smallest part that S3 takes.
    partBytes: parameters.integer('partBytes', 5 * mib, 512 * mib) ?? 8 * mib,
  };
}

/** Time after which an operation of several requests, each with its own limit and its turn, is given up. */
export function backstopMs(settings: RemoteSettings): number {
  return 10 * settings.timeoutMs + 120_000;
}
