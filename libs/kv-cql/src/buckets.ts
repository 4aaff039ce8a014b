/**
 * Which partition of its shard a stored key lies in. All entries of a map or list, and all timers of a shard, are in one, so that
 * the scans that jobs make ask one partition and not all. Pure.
 */
import { ByteReader, murmur3 } from '@millrace/kernel';
import { eventTimerStateId, processingTimerStateId, readLength } from '@millrace/state';

/** Behind the key group and the state's id. */
const prefixBytes = 4;
const longLengthBytes = 4;

export function bucketOf(key: Uint8Array, buckets: number): number {
  if (buckets === 1 || isTimer(key)) return 0;
  return murmur3(key, 2, ownerEnd(key) ?? key.length) % buckets;
}

/** The one bucket in which all keys of `[start, end)` lie; undefined when they may be in any. */
export function bucketOfRange(start: Uint8Array, end: Uint8Array | undefined, buckets: number): number | undefined {
  if (buckets === 1) return 0;
  const common = start.subarray(0, commonLength(start, end));
  if (common.length >= prefixBytes && isTimer(common)) return 0;
  const length = ownerEnd(common);
  return length === undefined ? undefined : murmur3(common, 2, length) % buckets;
}

function isTimer(key: Uint8Array): boolean {
  const stateId = ((key[2] ?? 0) << 8) | (key[3] ?? 0);
  return stateId === eventTimerStateId || stateId === processingTimerStateId;
}

/** Where the record's key ends in a stored key; undefined when it is not all there. */
function ownerEnd(key: Uint8Array): number | undefined {
  const isLong = (key[prefixBytes] ?? 0) >= 0x80;
  if (key.length < prefixBytes + (isLong ? longLengthBytes : 1)) return undefined;
  const reader = new ByteReader(key.subarray(prefixBytes));
  const end = readLength(reader) + reader.position + prefixBytes;
  return end <= key.length ? end : undefined;
}

/** How many bytes all keys of `[start, end)` have in common with `start`. */
function commonLength(start: Uint8Array, end: Uint8Array | undefined): number {
  if (end === undefined) return 0;
  let length = 0;
  while (length < start.length && length < end.length && start[length] === end[length]) length++;
  // `end` is the first key that does not begin as `start` does up to there.
  const isNext = end.length === length + 1 && length < start.length && end[length] === (start[length] as number) + 1;
  return isNext ? length + 1 : length;
}
