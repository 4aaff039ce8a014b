export { type LsmStoreOptions, openLsmStore } from './lsm-store.ts';
