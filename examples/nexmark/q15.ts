/*
 * Nexmark 15, bidding statistics: for each day (UTC), told at its end, the number of bids, of different bidders and of
 * different auctions, each in all and by rank of price.
 *
 * No subtask has to hold all bidders of a day: each counts those of its keys, and the counts are added.
 */
import { type Bid, type Codec, job, json, type KeyedStream, type Stream, struct, tumbling } from '@millrace/streams';
import { bids, rowFiles, siteEvents, siteOptions } from './site.ts';
import { dayOf, noRanks, plusRanks, present, type Ranks, rankOf, ranks } from './statistics.ts';

interface Counts {
  readonly bids: Ranks;
  readonly bidders: Ranks;
  readonly auctions: Ranks;
}

const counts: Codec<Counts> = struct({ bids: ranks, bidders: ranks, auctions: ranks });
const days = tumbling({ days: 1 });

export default job('nexmark-q15', { options: siteOptions('nexmark-q15') }, (flow, o) => {
  const all = bids(siteEvents(flow, o));
  const ofBidders = ofEach(
    all.keyBy((bid) => bid.bidder),
    'bidders',
    (sum) => ({ bids: sum, bidders: present(sum), auctions: noRanks }),
  );
  const ofAuctions = ofEach(
    all.keyBy((bid) => bid.auction),
    'auctions',
    (sum) => ({ bids: noRanks, bidders: noRanks, auctions: present(sum) }),
  );
  ofBidders
    .union(ofAuctions)
    .keyBy(() => 'all')
    .window(days, { uid: 'days' })
    .aggregate({
      accumulator: counts,
      output: json<{ day: string } & Counts>(),
      create: () => ({ bids: noRanks, bidders: noRanks, auctions: noRanks }),
      add: (sum, part) => ({
        bids: plusRanks(sum.bids, part.bids),
        bidders: plusRanks(sum.bidders, part.bidders),
        auctions: plusRanks(sum.auctions, part.auctions),
      }),
      result: (sum, _key, { startMs }) => ({ day: dayOf(startMs), ...sum }),
    })
    .to(rowFiles(o), { uid: 'files' });
});

/** The bids of each key and day, counted. */
function ofEach(keyed: KeyedStream<number, Bid>, uid: string, result: (sum: Ranks) => Counts): Stream<Counts> {
  return keyed.window(days, { uid }).aggregate({
    accumulator: ranks,
    output: counts,
    create: () => noRanks,
    add: (sum, bid) => plusRanks(sum, rankOf(bid.price)),
    result,
  });
}
