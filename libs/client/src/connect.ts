import { type Clock, MillraceError, systemClock } from '@millrace/kernel';
import { Client, Connection } from '@temporalio/client';
import { MillraceClient } from './millrace-client.ts';

export interface ConnectOptions {
  /** host:port of the Temporal frontend. Default 127.0.0.1:7233. */
  readonly address?: string;
  /** Default `default`. */
  readonly namespace?: string;
  /** Longest wait for the connection and for each call, milliseconds. Default 10,000. */
  readonly timeoutMs?: number;
  readonly clock?: Clock;
}

/** Connects to the Temporal service that Millrace's jobs run on. Rejects with `temporal-unreachable`. */
export async function connectMillrace(options: ConnectOptions = {}): Promise<MillraceClient> {
  const { address = '127.0.0.1:7233', namespace = 'default', timeoutMs = 10_000, clock = systemClock } = options;
  try {
    const connection = await Connection.connect({ address, connectTimeout: timeoutMs });
    return new MillraceClient({ client: new Client({ connection, namespace }), connection, address, clock, timeoutMs });
  } catch (error) {
    throw new MillraceError(
      'temporal-unreachable',
      `No Temporal service answers at ${address}. Set MILLRACE_TEMPORAL_ADDRESS to host:port of its frontend, or start one with "millrace dev".`,
      { cause: error, details: { address, namespace } },
    );
  }
}
