/*
 * Nexmark 4, average price for a category: for each category and each moment at which auctions of it end, the average
 * of the winning bids of all its auctions that have ended by then.
 *
 * In SQL the row of a category is updated with each bid; here it is told once prices are final, as in the first Nexmark.
 */
import { int64, job, json, map, struct, value } from '@millrace/streams';
import { rowFiles, siteEvents, siteOptions } from './site.ts';
import { winningBids } from './winning-bids.ts';

const prices = struct({ auctions: int64, sum: int64 });

export default job('nexmark-q4', { options: siteOptions('nexmark-q4') }, (flow, o) => {
  winningBids(siteEvents(flow, o))
    .keyBy(({ auction }) => auction.category)
    .process({
      uid: 'categories',
      state: {
        /** All auctions that have ended. */
        total: value(prices),
        /** By their end: those of which others may still come. */
        ending: map(int64, prices),
      },
      output: json<{ category: number; endedMs: number; auctions: number; averagePrice: number }>(),
      async onRecord({ auction, bid }, { state, timers }) {
        const soFar = await state.ending.get(auction.expires);
        state.ending.set(auction.expires, plus(soFar, { auctions: 1, sum: bid.price }));
        timers.at(auction.expires);
      },
      async onTimer(endedMs, ctx) {
        const { state } = ctx;
        const [before, ended] = await Promise.all([state.total.get(), state.ending.get(endedMs)]);
        if (ended === undefined) return;
        const total = plus(before, ended);
        state.total.set(total);
        state.ending.delete(endedMs);
        ctx.emit({ category: ctx.key, endedMs, auctions: total.auctions, averagePrice: total.sum / total.auctions });
      },
    })
    .to(rowFiles(o), { uid: 'files' });
});

interface Prices {
  readonly auctions: number;
  readonly sum: number;
}

function plus(a: Prices | undefined, b: Prices): Prices {
  return a === undefined ? b : { auctions: a.auctions + b.auctions, sum: a.sum + b.sum };
}
