export { BlockCache, type BlockCacheOptions, type BlockOwner } from './block-cache.ts';
export {
  ExistenceFilter,
  type ExistenceFilterOptions,
  type ExistenceScope,
  type ExistenceScopeOptions,
  type ExistenceStats,
} from './existence/existence-filter.ts';
export { type CacheAnswer, type CachedValue, OffHeapCache, type OffHeapCacheOptions } from './off-heap-cache.ts';
