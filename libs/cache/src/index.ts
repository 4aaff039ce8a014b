export { BlockCache, type BlockCacheOptions, type BlockOwner } from './block-cache.ts';
export { type CachedFile } from './disk/cached-file.ts';
export { type CachedReads, type FileCache, type FileThrough, noFileCache } from './disk/file-cache.ts';
export {
  type DiskCachePlace,
  type DiskCacheSettings,
  openDiskCache,
  openDiskFiles,
  type RunningDiskCache,
} from './disk/open-disk-cache.ts';
export {
  ExistenceFilter,
  type ExistenceFilterOptions,
  type ExistenceScope,
  type ExistenceScopeOptions,
  type ExistenceStats,
} from './existence/existence-filter.ts';
export { type CacheAnswer, type CachedValue, OffHeapCache, type OffHeapCacheOptions } from './off-heap-cache.ts';
export { type CachePolicyName, cachePolicies, cachePolicy } from './policies/policies.ts';
export type { Arrival, CachePolicy } from './policies/policy.ts';
