export { BlockCache, type BlockCacheOptions, type BlockOwner } from './block-cache.ts';
export { type CacheAnswer, type CachedValue, OffHeapCache, type OffHeapCacheOptions } from './off-heap-cache.ts';
