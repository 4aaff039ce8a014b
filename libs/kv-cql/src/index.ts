export { type CqlStoreOptions, openCqlStore } from './cql-store.ts';
export { createStateBackend } from './create-backend.ts';
export { type CqlSettings, readCqlSettings } from './settings.ts';
