export { createStateBackend } from './create-backend.ts';
export { type KvStoreOptions, openKvStore } from './kv-store.ts';
export { type RocksDbOptions, rocksDbEngine } from './rocksdb/rocksdb-engine.ts';
