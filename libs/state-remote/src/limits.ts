/** What bounds one remote table on the client's side. */
export interface RemoteLimits {
  /** Bytes of requests sent and not answered; beyond it they wait. */
  readonly windowBytes: number;
  /** Bytes of requests that wait. From here on calls are refused: their callers did not heed the backpressure. */
  readonly queueBytesMax: number;
  /** Longest time from sending to the answer. */
  readonly openTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly snapshotTimeoutMs: number;
  /** How long the service may take to close a table before the connection is cut. */
  readonly closeTimeoutMs: number;
}

export const defaultRemoteLimits: RemoteLimits = {
  windowBytes: 4 * 1024 * 1024,
  queueBytesMax: 64 * 1024 * 1024,
  openTimeoutMs: 60_000,
  requestTimeoutMs: 30_000,
  snapshotTimeoutMs: 300_000,
  closeTimeoutMs: 5_000,
};
