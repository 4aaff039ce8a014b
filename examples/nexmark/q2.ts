/*
 * Nexmark 2, selection: auction and price of the bids for auctions whose number is a multiple of 123.
 */
import { job } from '@millrace/streams';
import { bids, rowFiles, siteEvents, siteOptions } from './site.ts';

export default job('nexmark-q2', { options: siteOptions('nexmark-q2') }, (flow, o) => {
  bids(siteEvents(flow, o))
    .filter((bid) => bid.auction % 123 === 0)
    .map(({ auction, price }) => ({ auction, price }))
    .to(rowFiles(o), { uid: 'files' });
});
