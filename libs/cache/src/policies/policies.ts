import { HistoryPolicy } from './history-policy.ts';
import { LruPolicy } from './lru-policy.ts';
import type { CachePolicy } from './policy.ts';
import { S3FifoPolicy } from './s3-fifo-policy.ts';

export const cachePolicies = ['history', 'lru', 's3-fifo'] as const;
export type CachePolicyName = (typeof cachePolicies)[number];

export function cachePolicy(name: CachePolicyName): CachePolicy {
  switch (name) {
    case 'history':
      return new HistoryPolicy();
    case 'lru':
      return new LruPolicy();
    case 's3-fifo':
      return new S3FifoPolicy();
  }
}
