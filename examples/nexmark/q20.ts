/*
 * Nexmark 20, expand bids: each bid for an auction of category 10, with the auction; whichever comes first.
 */
import { type Auction, auctionCodec, type Bid, bidCodec, job, json } from '@millrace/streams';
import { auctions, bids, rowFiles, siteEvents, siteOptions } from './site.ts';

interface ExpandedBid {
  readonly bid: Bid;
  readonly auction: Auction;
}

export default job('nexmark-q20', { options: siteOptions('nexmark-q20') }, (flow, o) => {
  const events = siteEvents(flow, o);
  bids(events)
    .keyBy((bid) => bid.auction)
    .join(
      auctions(events)
        .filter((auction) => auction.category === 10)
        .keyBy((auction) => auction.id),
      {
        uid: 'expanded',
        // A bid has no number of its own.
        left: {
          codec: bidCodec,
          id: ({ bidder, dateTime, price, extra }) => `${bidder} ${dateTime} ${price} ${extra}`,
        },
        right: { codec: auctionCodec },
        ttl: { days: 1 },
        output: json<ExpandedBid>(),
        pair: (bid, auction) => ({ bid, auction }),
      },
    )
    .to(rowFiles(o), { uid: 'files' });
});
