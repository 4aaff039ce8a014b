import type { Counter, Histogram, Metrics } from '@millrace/telemetry';
import cassandra, { type Client } from 'cassandra-driver';

/** What the driver counts, as metrics of the process. */
export class DriverMetrics extends cassandra.metrics.DefaultMetrics {
  readonly #errors: Counter;
  readonly #retries: Counter;
  readonly #speculative: Counter;
  readonly #responses: Histogram;

  constructor(metrics: Metrics) {
    super();
    this.#errors = metrics.counter('millrace_cql_driver_errors_total', 'Requests to the ring that failed, by why');
    this.#retries = metrics.counter('millrace_cql_driver_retries_total', 'Requests that the driver repeated, by why');
    this.#speculative = metrics.counter('millrace_cql_driver_speculative_total', 'Reads also asked of another node');
    this.#responses = metrics.histogram('millrace_cql_driver_response_seconds', 'Time of requests that succeeded');
  }

  override onAuthenticationError(): void {
    this.#errors.add(1, { reason: 'authentication' });
  }
  override onClientTimeoutError(): void {
    this.#errors.add(1, { reason: 'client-timeout' });
  }
  override onConnectionError(): void {
    this.#errors.add(1, { reason: 'connection' });
  }
  override onReadTimeoutError(): void {
    this.#errors.add(1, { reason: 'read-timeout' });
  }
  override onWriteTimeoutError(): void {
    this.#errors.add(1, { reason: 'write-timeout' });
  }
  override onUnavailableError(): void {
    this.#errors.add(1, { reason: 'unavailable' });
  }
  override onOtherError(): void {
    this.#errors.add(1, { reason: 'other' });
  }
  override onIgnoreError(): void {
    this.#errors.add(1, { reason: 'ignored' });
  }
  override onClientTimeoutRetry(): void {
    this.#retries.add(1, { reason: 'client-timeout' });
  }
  override onReadTimeoutRetry(): void {
    this.#retries.add(1, { reason: 'read-timeout' });
  }
  override onWriteTimeoutRetry(): void {
    this.#retries.add(1, { reason: 'write-timeout' });
  }
  override onUnavailableRetry(): void {
    this.#retries.add(1, { reason: 'unavailable' });
  }
  override onOtherErrorRetry(): void {
    this.#retries.add(1, { reason: 'other' });
  }
  override onSpeculativeExecution(): void {
    this.#speculative.add(1);
  }
  override onSuccessfulResponse(latency: number[]): void {
    this.#responses.record((latency[0] as number) + (latency[1] as number) / 1e9);
  }
  override onResponse(): void {
    // All of them: those that succeeded and the errors are counted above.
  }
}

/** Gauges of the driver's connections; returns what takes them down. */
export function observeDriver(metrics: Metrics, client: Client): () => void {
  const gauges = [
    metrics.gauge('millrace_cql_driver_hosts', 'Nodes of the ring that the driver is connected to', () => {
      return client.getState().getConnectedHosts().length;
    }),
    metrics.gauge('millrace_cql_driver_connections', 'Connections to the ring', () => {
      const state = client.getState();
      return state.getConnectedHosts().reduce((sum, host) => sum + state.getOpenConnections(host), 0);
    }),
    metrics.gauge('millrace_cql_driver_in_flight', 'Requests to the ring under way', () => {
      const state = client.getState();
      return state.getConnectedHosts().reduce((sum, host) => sum + state.getInFlightQueries(host), 0);
    }),
  ];
  return () => {
    for (const remove of gauges) remove();
  };
}
