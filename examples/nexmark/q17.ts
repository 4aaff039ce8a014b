/*
 * Nexmark 17, auction statistics: for each auction and day (UTC), told at its end, the number of bids in all and by rank
 * of price, and the least, the highest, the average and the sum of the prices.
 */
import { int64, job, json, struct, tumbling } from '@millrace/streams';
import { bids, rowFiles, siteEvents, siteOptions } from './site.ts';
import { dayOf, noRanks, plusRanks, type Ranks, rankOf, ranks } from './statistics.ts';

interface AuctionDay {
  readonly auction: number;
  readonly day: string;
  readonly bids: Ranks;
  readonly minPrice: number;
  readonly maxPrice: number;
  readonly averagePrice: number;
  readonly sumPrice: number;
}

export default job('nexmark-q17', { options: siteOptions('nexmark-q17') }, (flow, o) => {
  bids(siteEvents(flow, o))
    .keyBy((bid) => bid.auction)
    .window(tumbling({ days: 1 }), { uid: 'auction-days' })
    .aggregate({
      accumulator: struct({ bids: ranks, min: int64, max: int64, sum: int64 }),
      output: json<AuctionDay>(),
      create: () => ({ bids: noRanks, min: Number.MAX_SAFE_INTEGER, max: 0, sum: 0 }),
      add: ({ bids, min, max, sum }, { price }) => ({
        bids: plusRanks(bids, rankOf(price)),
        min: Math.min(min, price),
        max: Math.max(max, price),
        sum: sum + price,
      }),
      result: ({ bids, min, max, sum }, auction, { startMs }) => ({
        auction,
        day: dayOf(startMs),
        bids,
        minPrice: min,
        maxPrice: max,
        averagePrice: sum / bids.total,
        sumPrice: sum,
      }),
    })
    .to(rowFiles(o), { uid: 'files' });
});
