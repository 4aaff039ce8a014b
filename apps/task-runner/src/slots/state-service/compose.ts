/** Composition of a slot's store when its tables live in state-services. A file of its own: gRPC takes long to load. */
import type { Clock } from '@millrace/kernel';
import type { StateStore } from '@millrace/state';
import { openRemoteStore, openShardedStore } from '@millrace/state-remote';
import type { Telemetry } from '@millrace/telemetry';
import type { StateServiceAccess } from '../slot-protocol.ts';

export interface ServiceStoreOptions {
  readonly services: StateServiceAccess;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

export function openServiceStore({ services, clock, telemetry }: ServiceStoreOptions): StateStore {
  const { instances, tlsCa, token } = services;
  const stores = instances.map(({ name, address }) => {
    return { name, store: openRemoteStore({ address, clock, telemetry, rpc: { tlsCa, token } }) };
  });
  const [only] = stores;
  return only !== undefined && stores.length === 1 ? only.store : openShardedStore(stores);
}
