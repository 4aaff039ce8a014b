import type { Arrival, CachePolicy, PolicyFile } from './policy.ts';

export interface HistoryPolicyOptions {
  /** A file that is not cached is loaded when it was read more often than this within `windowMs`. Default 30. */
  readonly readsMin?: number;
  /** Default one minute. */
  readonly windowMs?: number;
  /** Files outside of the cache whose reads are counted. Default 4096. */
  readonly remembered?: number;
}

const buckets = 12;
/** Reads of one file within the window, in buckets of a twelfth of it, and when the last two times were. */
class Reads {
  readonly file: PolicyFile;
  lastMs = Number.NEGATIVE_INFINITY;
  lastButOneMs = Number.NEGATIVE_INFINITY;
  readonly #counts = new Uint32Array(buckets);
  #newest = 0;

  constructor(file: PolicyFile) {
    this.file = file;
  }

  add(count: number, nowMs: number, bucket: number): void {
    if (nowMs > this.lastMs) {
      this.lastButOneMs = this.lastMs;
      this.lastMs = nowMs;
    }
    this.#moveTo(bucket);
    this.#counts[bucket % buckets] = (this.#counts[bucket % buckets] as number) + count;
  }

  within(bucket: number): number {
    this.#moveTo(bucket);
    let sum = 0;
    for (let i = 0; i < buckets; i++) sum += this.#counts[i] as number;
    return sum;
  }

  #moveTo(bucket: number): void {
    if (bucket - this.#newest >= buckets) this.#counts.fill(0);
    else for (let at = this.#newest + 1; at <= bucket; at++) this.#counts[at % buckets] = 0;
    this.#newest = Math.max(bucket, this.#newest);
  }
}

/**
 * The history-based policy of ForSt (Flink 2.0): files are admitted as they are written, the least recently used one goes,
 * and a file outside of the cache comes back when it was read often within the last minute. A miss alone loads nothing, so a
 * working set that is larger than the cache does not thrash it. Beyond ForSt, a file comes back only in place of files that
 * were not read since its last read but one (the comparison of LIRS, Jiang and Zhang 2002): files in equal use stay where
 * they are, and what is not used any more goes.
 */
export class HistoryPolicy implements CachePolicy {
  readonly name = 'history';
  readonly #readsMin: number;
  readonly #bucketMs: number;
  readonly #remembered: number;
  /** Both in order of last use. */
  readonly #cached = new Map<string, Reads>();
  readonly #others = new Map<string, Reads>();

  constructor(options: HistoryPolicyOptions = {}) {
    this.#readsMin = options.readsMin ?? 30;
    this.#bucketMs = (options.windowMs ?? 60_000) / buckets;
    this.#remembered = options.remembered ?? 4096;
  }

  added(file: PolicyFile): void {
    const reads = this.#others.get(file.id) ?? new Reads(file);
    this.#others.delete(file.id);
    this.#cached.delete(file.id);
    this.#cached.set(file.id, reads);
  }

  removed(id: string): void {
    this.#cached.delete(id);
    this.#others.delete(id);
  }

  accessed(file: PolicyFile, count: number, nowMs: number): void {
    const map = this.#cached.has(file.id) ? this.#cached : this.#others;
    const reads = map.get(file.id) ?? new Reads(file);
    map.delete(file.id);
    map.set(file.id, reads);
    reads.add(count, nowMs, this.#bucket(nowMs));
    if (this.#others.size > this.#remembered) this.#forgetOldest();
  }

  evict(_nowMs: number, file?: PolicyFile, how?: Arrival): string | undefined {
    const [oldest] = this.#cached;
    if (oldest === undefined) return undefined;
    const [id, reads] = oldest;
    if (file !== undefined && how === 'loaded') {
      const again = this.#others.get(file.id)?.lastButOneMs ?? Number.NEGATIVE_INFINITY;
      if (again <= reads.lastMs) return undefined;
    }
    this.#cached.delete(id);
    this.#others.set(id, reads);
    if (this.#others.size > this.#remembered) this.#forgetOldest();
    return id;
  }

  wanted(nowMs: number): readonly PolicyFile[] {
    const hot: Array<{ file: PolicyFile; count: number }> = [];
    const bucket = this.#bucket(nowMs);
    for (const reads of this.#others.values()) {
      const count = reads.within(bucket);
      if (count > this.#readsMin) hot.push({ file: reads.file, count });
    }
    return hot.sort((a, b) => b.count - a.count).map(({ file }) => file);
  }

  #bucket(nowMs: number): number {
    return Math.floor(nowMs / this.#bucketMs);
  }

  #forgetOldest(): void {
    for (const id of this.#others.keys()) {
      this.#others.delete(id);
      return;
    }
  }
}
