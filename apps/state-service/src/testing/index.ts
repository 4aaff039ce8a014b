export { type ServedStore, type ServedStoreOptions, serveStore } from './served-store.ts';
