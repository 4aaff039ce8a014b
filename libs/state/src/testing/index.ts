export { runStateStoreCase, stateStoreCases, stateStoreConformance } from './conformance.ts';
export type { CaseContext, OpenStateStore, StateStoreCase, StateStoreFixture } from './conformance-port.ts';
export { forSeeds } from './property.ts';
export { randomKey, randomString } from './random-values.ts';
export { slowStore } from './slow-store.ts';
