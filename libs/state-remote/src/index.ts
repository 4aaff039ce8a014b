export { defaultRemoteLimits, type RemoteLimits } from './limits.ts';
export { openRemoteStore, type RemoteStoreOptions } from './remote-store.ts';
export { type NamedStore, openShardedStore } from './sharded/sharded-store.ts';
// The wire form of the port's packed arrays, for those who serve it.
export { batchFromWire } from './wire/batch.ts';
export { keysFromWire, type PageMessage, pageToWire, type ValuesMessage, valuesToWire } from './wire/packed.ts';
export { itemBytesMax, tooLarge } from './wire/split.ts';
