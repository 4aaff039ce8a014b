/*
 * Counts by price, for queries 15, 16 and 17. Rank 1 is below 100 dollars, rank 2 below 10,000, rank 3 above.
 */
import { int64, struct } from '@millrace/streams';

export interface Ranks {
  readonly total: number;
  readonly rank1: number;
  readonly rank2: number;
  readonly rank3: number;
}

export const ranks = struct({ total: int64, rank1: int64, rank2: int64, rank3: int64 });

export const noRanks: Ranks = { total: 0, rank1: 0, rank2: 0, rank3: 0 };

/** One bid of this price, in cents. */
export function rankOf(price: number): Ranks {
  if (price < 10_000) return { total: 1, rank1: 1, rank2: 0, rank3: 0 };
  return price < 1_000_000 ? { total: 1, rank1: 0, rank2: 1, rank3: 0 } : { total: 1, rank1: 0, rank2: 0, rank3: 1 };
}

export function plusRanks(a: Ranks, b: Ranks): Ranks {
  return {
    total: a.total + b.total,
    rank1: a.rank1 + b.rank1,
    rank2: a.rank2 + b.rank2,
    rank3: a.rank3 + b.rank3,
  };
}

/** What one bidder, or one auction, with these bids adds to a count of different ones. */
export function present({ total, rank1, rank2, rank3 }: Ranks): Ranks {
  return { total: Math.sign(total), rank1: Math.sign(rank1), rank2: Math.sign(rank2), rank3: Math.sign(rank3) };
}

export function dayOf(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10);
}
