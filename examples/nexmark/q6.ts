/*
 * Nexmark 6, average selling price by seller: with each auction that ends with a winning bid, the average price of the
 * seller's last ten such auctions, this one included. Auctions of one seller that end together count by their number.
 */
import { array, int64, job, json, map, struct, value } from '@millrace/streams';
import { rowFiles, siteEvents, siteOptions } from './site.ts';
import { winningBids } from './winning-bids.ts';

const sale = struct({ auction: int64, price: int64 });

export default job('nexmark-q6', { options: siteOptions('nexmark-q6') }, (flow, o) => {
  winningBids(siteEvents(flow, o))
    .keyBy(({ auction }) => auction.seller)
    .process({
      uid: 'sellers',
      state: {
        /** Prices of the last sales, the newest last. */
        last: value(array(int64)),
        /** By their end: those of which others may still come. */
        ending: map(int64, array(sale)),
      },
      output: json<{ seller: number; auction: number; averagePrice: number }>(),
      async onRecord({ auction, bid }, { state, timers }) {
        const together = (await state.ending.get(auction.expires)) ?? [];
        state.ending.set(auction.expires, [...together, { auction: auction.id, price: bid.price }]);
        timers.at(auction.expires);
      },
      async onTimer(endedMs, ctx) {
        const { state } = ctx;
        const [before = [], ended = []] = await Promise.all([state.last.get(), state.ending.get(endedMs)]);
        let last = before;
        for (const { auction, price } of ended.toSorted((a, b) => a.auction - b.auction)) {
          last = [...last, price].slice(-10);
          ctx.emit({ seller: ctx.key, auction, averagePrice: last.reduce((sum, one) => sum + one, 0) / last.length });
        }
        state.last.set(last);
        state.ending.delete(endedMs);
      },
    })
    .to(rowFiles(o), { uid: 'files' });
});
