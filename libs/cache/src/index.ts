export { BlockCache, type BlockCacheOptions, type BlockOwner } from './block-cache.ts';
