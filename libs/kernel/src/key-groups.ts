import { assert } from './assert.ts';
import { murmur3 } from './murmur3.ts';

/** The number of key groups of a job whose options name none; fixed for the life of a job's state. */
export const defaultMaxParallelism = 128;
/** Key groups are two bytes in a stored key. */
export const maxParallelismLimit = 32_768;

/** Key groups `start` to `end`, both included. */
export interface KeyGroupRange {
  readonly start: number;
  readonly end: number;
}

/** The key group of a key's canonical bytes (DESIGN §6). */
export function keyGroupOf(keyBytes: Uint8Array, start: number, end: number, maxParallelism: number): number {
  return murmur3(keyBytes, start, end) % maxParallelism;
}

/** The contiguous key groups that subtask `index` of `parallelism` owns; the ranges of all subtasks partition the groups. */
export function keyGroupRange(index: number, parallelism: number, maxParallelism: number): KeyGroupRange {
  assert(index >= 0 && index < parallelism && parallelism <= maxParallelism, `bad subtask ${index} of ${parallelism}`);
  return {
    start: Math.ceil((index * maxParallelism) / parallelism),
    end: Math.ceil(((index + 1) * maxParallelism) / parallelism) - 1,
  };
}

/** The subtask that owns `keyGroup`; the inverse of {@link keyGroupRange}. */
export function subtaskOfKeyGroup(keyGroup: number, parallelism: number, maxParallelism: number): number {
  return Math.floor((keyGroup * parallelism) / maxParallelism);
}

export function containsKeyGroup(range: KeyGroupRange, keyGroup: number): boolean {
  return keyGroup >= range.start && keyGroup <= range.end;
}
