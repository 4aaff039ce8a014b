export { assert, unreachable } from './assert.ts';
export { ByteReader } from './byte-reader.ts';
export { ByteSlab } from './byte-slab.ts';
export { ByteWriter } from './byte-writer.ts';
export { compareBytes, compareRanges, copyOf, copyRange, equalRanges, prefixEnd } from './bytes.ts';
export { type Clock, sleep, systemClock, type Timer } from './clock.ts';
export { type ErrorCode, errorCodes } from './error-codes.ts';
export {
  type ErrorDetails,
  type ErrorJson,
  type ErrorKind,
  errorFromJson,
  errorToJson,
  isKind,
  MillraceError,
} from './errors.ts';
export {
  containsKeyGroup,
  defaultMaxParallelism,
  type KeyGroupRange,
  keyGroupOf,
  keyGroupRange,
  maxParallelismLimit,
  subtaskOfKeyGroup,
} from './key-groups.ts';
export { isPending, type MaybePromise } from './maybe-promise.ts';
export { murmur3 } from './murmur3.ts';
export { type Random, SeededRandom, systemRandom } from './random.ts';
export { Semaphore } from './semaphore.ts';
