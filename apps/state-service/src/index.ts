export { JobStores, type JobStoresOptions, type OpenedStore } from './backend/job-stores.ts';
export {
  defaultServerLimits,
  type ServerLimits,
  StateServer,
  type StateServerOptions,
} from './service/state-server.ts';
