/*
 * Nexmark 18, last bid: the last bid of each bidder for each auction. A row replaces those of its bidder and auction that
 * have earlier times: what remains is each bid than which there is no later one.
 */
import { bidCodec, job } from '@millrace/streams';
import { bids, rowFiles, siteEvents, siteOptions } from './site.ts';

export default job('nexmark-q18', { options: siteOptions('nexmark-q18') }, (flow, o) => {
  bids(siteEvents(flow, o))
    .keyBy((bid) => [bid.bidder, bid.auction])
    .deduplicate({ uid: 'last-bids', keep: 'last', codec: bidCodec, ttl: { days: 1 } })
    .to(rowFiles(o), { uid: 'files' });
});
