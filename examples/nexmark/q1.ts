/*
 * Nexmark 1, currency conversion: every bid with its price in euros, at 0.908 euros for a dollar.
 */
import { job } from '@millrace/streams';
import { bids, rowFiles, siteEvents, siteOptions } from './site.ts';

export default job('nexmark-q1', { options: siteOptions('nexmark-q1') }, (flow, o) => {
  bids(siteEvents(flow, o))
    .map(({ auction, bidder, price, dateTime, extra }) => ({
      auction,
      bidder,
      price: (price * 908) / 1000,
      dateTime,
      extra,
    }))
    .to(rowFiles(o), { uid: 'files' });
});
