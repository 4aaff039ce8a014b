/*
 * Nexmark 13, bounded side input join: each bid with the row of a table that has as key the auction's number modulo
 * 10,000. The table is asked asynchronously, once an hour for each key.
 */
import { job, json, string } from '@millrace/streams';
import { sideInput, sideInputRows } from './side-input.ts';
import { bids, rowFiles, siteEvents, siteOptions } from './site.ts';

interface EnrichedBid {
  readonly auction: number;
  readonly bidder: number;
  readonly price: number;
  readonly dateTime: number;
  readonly value: string;
}

export default job('nexmark-q13', { options: siteOptions('nexmark-q13') }, (flow, o) => {
  bids(siteEvents(flow, o))
    .keyBy((bid) => bid.auction % sideInputRows)
    .lookupJoin({
      uid: 'side-input',
      lookup: (key) => sideInput(key),
      cache: { codec: string, ttl: { hours: 1 } },
      output: json<EnrichedBid>(),
      pair: ({ auction, bidder, price, dateTime }, row) => ({ auction, bidder, price, dateTime, value: row }),
    })
    .to(rowFiles(o), { uid: 'files' });
});
