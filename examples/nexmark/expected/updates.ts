/*
 * Queries whose rows depend on the clock or on the order of arrival: 12, 18, 19. Their output is folded to what does not,
 * `settled`, and this is what has to be equal.
 */
import type { Bid } from '@millrace/streams';
import { grouped, type Site } from './site.ts';

interface Windowed {
  readonly bidder: number;
  readonly bids: number;
  readonly startMs: number;
  readonly endMs: number;
}

/** Every bid counts in one window: each bidder's windows together have all of them. */
export const q12 = {
  rows: ({ bids }: Site): unknown[] =>
    grouped(bids, (bid) => bid.bidder).map(([bidder, list]) => ({ bidder, bids: list.length })),
  settled: (rows: readonly unknown[]): unknown[] =>
    grouped(rows as readonly Windowed[], (row) => row.bidder).map(([bidder, list]) => {
      const wrong = list.find(({ startMs, endMs }) => startMs % 10_000 !== 0 || endMs - startMs !== 10_000);
      const windows = new Set(list.map(({ startMs }) => startMs));
      if (wrong !== undefined || windows.size < list.length) return { bidder, wrong: list };
      return { bidder, bids: list.reduce((sum, row) => sum + row.bids, 0) };
    }),
};

/** Bids of one time may all be told, whichever comes last: all bids of the newest time of their bidder and auction. */
function newest(bids: readonly Bid[]): Bid[] {
  return grouped(bids, ({ bidder, auction }) => `${bidder} ${auction}`).flatMap(([, list]) => {
    const last = list.reduce((max, { dateTime }) => Math.max(max, dateTime), 0);
    return list.filter(({ dateTime }) => dateTime === last);
  });
}

export const q18 = {
  rows: ({ bids }: Site): unknown[] => newest(bids),
  settled: (rows: readonly unknown[]): unknown[] => newest(rows as readonly Bid[]),
};

interface Top {
  readonly auction: number;
  readonly bids: readonly Pick<Bid, 'price' | 'bidder' | 'dateTime'>[];
}

function better(a: Top['bids'][number], b: Top['bids'][number]): number {
  return b.price - a.price || a.dateTime - b.dateTime || a.bidder - b.bidder;
}

/** Below zero when `a` has replaced `b`: at the first difference it has the better bid, or one more. */
function replaces(a: Top, b: Top): number {
  for (const [i, bid] of a.bids.entries()) {
    const other = b.bids[i];
    const order = other === undefined ? -1 : better(bid, other);
    if (order !== 0) return order;
  }
  return a.bids.length === b.bids.length ? 0 : 1;
}

/** A top 10 only gets better: the best of an auction's rows is the last one. */
export const q19 = {
  rows: ({ bids }: Site): unknown[] =>
    grouped(bids, (bid) => bid.auction).map(([auction, list]) => ({
      auction,
      bids: list
        .toSorted(better)
        .slice(0, 10)
        .map(({ price, bidder, dateTime }) => ({ price, bidder, dateTime })),
    })),
  settled: (rows: readonly unknown[]): unknown[] =>
    grouped(rows as readonly Top[], (row) => row.auction).map(([, list]) => list.toSorted(replaces)[0]),
};
