/*
 * Nexmark 19, auction top 10: the ten highest bids for each auction, told whenever they change. A row replaces those of
 * its auction with fewer or lower bids.
 */
import { type Bid, bidCodec, job, json } from '@millrace/streams';
import { bids, rowFiles, siteEvents, siteOptions } from './site.ts';

interface Best {
  readonly auction: number;
  /** The highest first. */
  readonly bids: readonly { readonly price: number; readonly bidder: number; readonly dateTime: number }[];
}

export default job('nexmark-q19', { options: siteOptions('nexmark-q19') }, (flow, o) => {
  bids(siteEvents(flow, o))
    .keyBy((bid) => bid.auction)
    .topN({
      uid: 'top-10',
      n: 10,
      compare: lower,
      codec: bidCodec,
      output: json<Best>(),
      result: (best, auction) => ({
        auction,
        bids: best.map(({ price, bidder, dateTime }) => ({ price, bidder, dateTime })),
      }),
    })
    .to(rowFiles(o), { uid: 'files' });
});

/** Of equally high bids the earlier is better, then that of the lower bidder. */
function lower(a: Bid, b: Bid): number {
  return b.price - a.price || a.dateTime - b.dateTime || a.bidder - b.bidder;
}
