import type { Data } from './data.ts';

/** A store of one process on a local directory. All calls are awaited one after the other. */
export interface Engine {
  /** Every key once, in the order of the data, in batches, until all of it lies in files. */
  fill(data: Data): Promise<void>;
  /** Resolves when nothing is merged any more. */
  settle(): Promise<void>;
  /** `count` lookups of keys below `below`, each by itself. */
  getEach(data: Data, count: number, below: number): Promise<void>;
  /** The same, 64 in one call. */
  getMany(data: Data, count: number, below: number): Promise<void>;
  /** Every row in order; the number of rows. */
  scan(): Promise<number>;
  close(): Promise<void>;
}

/** Lookups under way together, or in one call. */
export const together = 64;
