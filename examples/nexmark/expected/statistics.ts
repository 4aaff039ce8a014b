/* Queries by day: 15, 16, 17. */
import type { Bid } from '@millrace/streams';
import { grouped, type Site } from './site.ts';

const day = ({ dateTime }: Bid): string => new Date(dateTime).toISOString().slice(0, 10);

/** How many there are in all and with a price of each rank. */
function byRank(bids: readonly Bid[], count: (some: readonly Bid[]) => number): object {
  return {
    total: count(bids),
    rank1: count(bids.filter(({ price }) => price < 10_000)),
    rank2: count(bids.filter(({ price }) => price >= 10_000 && price < 1_000_000)),
    rank3: count(bids.filter(({ price }) => price >= 1_000_000)),
  };
}

function counts(list: readonly Bid[]): object {
  return {
    bids: byRank(list, (some) => some.length),
    bidders: byRank(list, (some) => new Set(some.map(({ bidder }) => bidder)).size),
    auctions: byRank(list, (some) => new Set(some.map(({ auction }) => auction)).size),
  };
}

export const q15 = ({ bids }: Site): unknown[] =>
  grouped(bids, day).map(([of, list]) => ({ day: of, ...counts(list) }));

export const q16 = ({ bids }: Site): unknown[] =>
  grouped(bids, (bid) => bid.channel).flatMap(([channel, all]) =>
    grouped(all, day).map(([of, list]) => {
      const last = list.reduce((max, { dateTime }) => Math.max(max, dateTime), 0);
      return { channel, day: of, minute: new Date(last).toISOString().slice(11, 16), ...counts(list) };
    }),
  );

export const q17 = ({ bids }: Site): unknown[] =>
  grouped(bids, (bid) => bid.auction).flatMap(([auction, all]) =>
    grouped(all, day).map(([of, list]) => {
      const prices = list.map(({ price }) => price).sort((a, b) => a - b);
      const sumPrice = prices.reduce((sum, price) => sum + price, 0);
      return {
        auction,
        day: of,
        bids: byRank(list, (some) => some.length),
        minPrice: prices[0],
        maxPrice: prices.at(-1),
        averagePrice: sumPrice / prices.length,
        sumPrice,
      };
    }),
  );
