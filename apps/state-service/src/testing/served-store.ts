import { systemClock } from '@millrace/kernel';
import type { StateStore } from '@millrace/state';
import { openRemoteStore, type RemoteLimits } from '@millrace/state-remote';
import { noTelemetry } from '@millrace/telemetry';
import { type ServerLimits, StateServer } from '../service/state-server.ts';

export interface ServedStore {
  readonly address: string;
  readonly server: StateServer;
  readonly client: StateStore;
  /** Client first, then server and store. */
  close(): Promise<void>;
}

export interface ServedStoreOptions {
  readonly client?: Partial<RemoteLimits>;
  readonly server?: Partial<ServerLimits>;
}

/** A real server on the loopback interface with a client of it. */
export async function serveStore(store: StateStore, options: ServedStoreOptions = {}): Promise<ServedStore> {
  const common = { clock: systemClock, telemetry: noTelemetry };
  const server = new StateServer({ store, ...common, limits: options.server ?? {} });
  const address = `127.0.0.1:${await server.listen('127.0.0.1:0')}`;
  const client = openRemoteStore({ address, ...common, limits: options.client ?? {} });
  return {
    address,
    server,
    client,
    close: async () => {
      await client.close();
      await server.close(500);
    },
  };
}
