/**
 * Names of what lies in Redis. A shard (the entries of one key group) is three keys: a hash from key to value, a sorted set
 * of the keys for scans, and a sorted set of the keys that expire, by when. The entries of an open table are under the number
 * of the open; those of a snapshot under its id.
 */
import type { KeyGroupRange } from '@millrace/kernel';
import type { TableSpec } from '@millrace/state';

export interface ShardKeys {
  readonly values: string;
  readonly order: string;
  readonly expiry: string;
}

export class Keys {
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  get jobs(): string {
    return `${this.#prefix}jobs`;
  }

  /** Hash from a snapshot's id to what it is. */
  snapshots(job: string): string {
    return `${this.#prefix}snapshots:${job}`;
  }

  /** Hash: newest `generation`, number of `opens`, and for each open table `open:<n>` what it is. */
  table({ job, operator }: Pick<TableSpec, 'job' | 'operator'>): string {
    return `${this.#prefix}table:${nameOf(job, operator)}`;
  }

  live({ job, operator }: Pick<TableSpec, 'job' | 'operator'>, open: number): (keyGroup: number) => ShardKeys {
    return shards(`${this.#prefix}live:${nameOf(job, operator)}:${open}`);
  }

  kept(job: string, snapshot: string): (keyGroup: number) => ShardKeys {
    return shards(`${this.#prefix}kept:${encodeURIComponent(job)}:${snapshot}`);
  }
}

/** Every key of the shards of `range`. */
export function allKeys(shard: (keyGroup: number) => ShardKeys, range: KeyGroupRange): string[] {
  const keys: string[] = [];
  for (let keyGroup = range.start; keyGroup <= range.end; keyGroup++) keys.push(...Object.values(shard(keyGroup)));
  return keys;
}

/** Stored keys begin with their key group, two bytes, big-endian. */
export function keyGroupOfStored(key: Uint8Array): number {
  return ((key[0] ?? 0) << 8) | (key[1] ?? 0);
}

function shards(base: string): (keyGroup: number) => ShardKeys {
  return (keyGroup) => ({
    values: `${base}:${keyGroup}:v`,
    order: `${base}:${keyGroup}:o`,
    expiry: `${base}:${keyGroup}:x`,
  });
}

function nameOf(job: string, operator: string): string {
  return `${encodeURIComponent(job)}/${encodeURIComponent(operator)}`;
}
