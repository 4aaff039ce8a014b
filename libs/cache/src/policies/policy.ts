/** A file as a policy sees it. */
export interface PolicyFile {
  readonly id: string;
  readonly bytes: number;
}

/** How a file comes into the cache: written through as it is made, loaded because the policy wanted it, or found at the start. */
export type Arrival = 'written' | 'loaded' | 'found';

/**
 * Decides what the disk cache holds. Pure: no clock, no input or output; it is told what happens, with the time (monotonic
 * milliseconds), and asked what to do. What it remembers of files that are not cached is bounded.
 */
export interface CachePolicy {
  readonly name: string;
  /** A file is cached from now on. Those found at the start come in order of their last use, oldest first. */
  added(file: PolicyFile, how: Arrival, nowMs: number): void;
  /** A cached file is gone, and not because this policy chose it. */
  removed(id: string): void;
  /** A file, cached or not, was read so many times. */
  accessed(file: PolicyFile, reads: number, nowMs: number): void;
  /**
   * Chooses a cached file that makes room for `file` and forgets it as such; undefined when none is to go for it. Without a
   * file, room is needed in any case.
   */
  evict(nowMs: number, file?: PolicyFile, how?: Arrival): string | undefined;
  /** Files that are not cached and should be, best first. Asked often; what is named and not loaded may be named again. */
  wanted(nowMs: number): readonly PolicyFile[];
}
