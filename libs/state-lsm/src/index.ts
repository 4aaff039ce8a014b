export { Generations } from './generations.ts';
export { type LsmStoreOptions, openLsmStore } from './lsm-store.ts';
