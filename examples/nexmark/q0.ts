/*
 * Nexmark 0, pass-through: every bid as it is, without its channel and URL. What the engine itself costs.
 */
import { job } from '@millrace/streams';
import { bids, rowFiles, siteEvents, siteOptions } from './site.ts';

export default job('nexmark-q0', { options: siteOptions('nexmark-q0') }, (flow, o) => {
  bids(siteEvents(flow, o))
    .map(({ auction, bidder, price, dateTime, extra }) => ({ auction, bidder, price, dateTime, extra }))
    .to(rowFiles(o), { uid: 'files' });
});
