import type { CacheLink } from './cache-link.ts';
import type { DiskCache } from './disk-cache.ts';

/** For users on the thread of the cache itself. */
export function directLink(cache: DiskCache): CacheLink {
  return {
    request: (request) => cache.request(request),
    notify: (notice) => cache.notify(notice),
    close: () => undefined,
  };
}
