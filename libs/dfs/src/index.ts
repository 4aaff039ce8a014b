export type { Dfs, DfsEntry, DfsWriter } from './dfs.ts';
export { LocalDfs, type LocalDfsOptions } from './local/local-dfs.ts';
export { MemoryDfs } from './memory-dfs.ts';
export { MeteredDfs } from './metered-dfs.ts';
export { type OpenDfsOptions, openDfs } from './open-dfs.ts';
export { checkPath } from './path.ts';
export type { RetryOptions } from './retry-policy.ts';
export { RetryingDfs } from './retrying-dfs.ts';
export { type DfsOperation, DfsStats, dfsOperations } from './stats.ts';
