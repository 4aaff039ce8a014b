/*
 * Nexmark 9, winning bids: each auction that had bids, with the one that won it.
 */
import { job } from '@millrace/streams';
import { rowFiles, siteEvents, siteOptions } from './site.ts';
import { winningBids } from './winning-bids.ts';

export default job('nexmark-q9', { options: siteOptions('nexmark-q9') }, (flow, o) => {
  winningBids(siteEvents(flow, o))
    .map(({ auction, bid }) => ({
      ...auction,
      bidder: bid.bidder,
      price: bid.price,
      bidDateTime: bid.dateTime,
      bidExtra: bid.extra,
    }))
    .to(rowFiles(o), { uid: 'files' });
});
