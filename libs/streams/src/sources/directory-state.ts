import { murmur3 } from '@millrace/kernel';
import type { Split } from '../api/source.ts';

/*
 * A directory's files are told apart by buckets: a file belongs to the bucket that its name hashes to, and the buckets are the
 * source's splits. So every subtask can say without asking anybody which new files are its own, at any parallelism, and
 * what has been read travels in the split.
 */

/** What a bucket keeps in a checkpoint. */
export interface BucketData {
  /** Names that have been read to their end and are still in the directory. */
  readonly done: readonly string[];
  /** The file that is being read; its position is the split's. */
  readonly current?: BucketFile | undefined;
}

export interface BucketFile {
  readonly name: string;
  /** Its length when it was discovered: what is added later is not read. */
  readonly endBytes: number;
}

export function bucketSplits(buckets: number): readonly Split[] {
  const data: BucketData = { done: [] };
  return Array.from({ length: buckets }, (_, order) => ({ id: `${order}/${buckets}`, order, data }));
}

export function bucketOf(name: string, buckets: number): number {
  const bytes = Buffer.from(name, 'utf8');
  return (murmur3(bytes, 0, bytes.length) >>> 0) % buckets;
}

/** Index of a bucket and their number, from a split's id. */
export function bucketId(split: Split): { readonly index: number; readonly buckets: number } {
  const [index, buckets] = split.id.split('/').map(Number);
  return { index: index as number, buckets: buckets as number };
}
