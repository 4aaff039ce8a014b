import { type Clock, MillraceError } from '@millrace/kernel';
import type { ConnectionOptions } from '@platformatic/kafka';

/** How to reach a Kafka cluster (brokers of 3.1 or later). */
export interface KafkaConnection {
  /** `host:port` of some brokers; the others are learnt from them. */
  readonly brokers: readonly string[];
  readonly clientId?: string | undefined;
  readonly tls?: ConnectionOptions['tls'];
  readonly sasl?: ConnectionOptions['sasl'];
  /** One request, at most. Default 30 s. */
  readonly requestTimeoutMs?: number | undefined;
  /**
   * An operation with its repetitions, such as a write or a commit; then it fails, and the job goes back to its last checkpoint.
   * Default 60 s.
   */
  readonly timeoutMs?: number | undefined;
}

/** {@link KafkaConnection}, checked and with its defaults. */
export interface ClusterSettings {
  readonly brokers: ReadonlyArray<{ readonly host: string; readonly port: number }>;
  readonly clientId: string;
  readonly connection: ConnectionOptions;
  readonly requestTimeoutMs: number;
  readonly timeoutMs: number;
}

export function clusterSettings(connection: KafkaConnection): ClusterSettings {
  const requestTimeoutMs = positive('requestTimeoutMs', connection.requestTimeoutMs ?? 30_000);
  if (connection.brokers.length === 0) throw new MillraceError('bad-argument', 'kafka: brokers must not be empty');
  return {
    brokers: connection.brokers.map(brokerAddress),
    clientId: connection.clientId ?? 'millrace',
    connection: {
      connectTimeout: Math.min(10_000, requestTimeoutMs),
      requestTimeout: requestTimeoutMs,
      ...(connection.tls === undefined ? {} : { tls: connection.tls }),
      ...(connection.sasl === undefined ? {} : { sasl: connection.sasl }),
    },
    requestTimeoutMs,
    timeoutMs: positive('timeoutMs', connection.timeoutMs ?? 60_000),
  };
}

function brokerAddress(text: string): { host: string; port: number } {
  const at = text.lastIndexOf(':');
  const [host, port] = [text.slice(0, at), Number(text.slice(at + 1))];
  if (at < 1 || !Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new MillraceError('bad-argument', `kafka: a broker is host:port, not ${JSON.stringify(text)}`);
  }
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port };
}

export function positive(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new MillraceError('bad-argument', `kafka: ${name} must be a positive whole number, not ${value}`);
}

/** A point in time by which an operation has to be done. */
export class Deadline {
  readonly #clock: Clock;
  readonly #atMs: number;

  constructor(clock: Clock, timeoutMs: number) {
    this.#clock = clock;
    this.#atMs = clock.monotonicMs() + timeoutMs;
  }

  get leftMs(): number {
    return Math.max(0, this.#atMs - this.#clock.monotonicMs());
  }
}
