/*
 * Nexmark 16, channel statistics: as query 15, for each channel and day (UTC), with the minute of the channel's last
 * bid of the day.
 */
import {
  type Bid,
  type Codec,
  int64,
  job,
  json,
  type KeyedStream,
  type Stream,
  string,
  struct,
  tumbling,
} from '@millrace/streams';
import { bids, rowFiles, siteEvents, siteOptions } from './site.ts';
import { dayOf, noRanks, plusRanks, present, type Ranks, rankOf, ranks } from './statistics.ts';

interface Counts {
  readonly bids: Ranks;
  readonly bidders: Ranks;
  readonly auctions: Ranks;
}

/** Of one bidder, or one auction, in a channel. */
interface Part {
  readonly channel: string;
  readonly lastMs: number;
  readonly counts: Counts;
}

type ChannelKey = readonly [channel: string, of: number];

const counts: Codec<Counts> = struct({ bids: ranks, bidders: ranks, auctions: ranks });
const part: Codec<Part> = struct({ channel: string, lastMs: int64, counts });
const days = tumbling({ days: 1 });

export default job('nexmark-q16', { options: siteOptions('nexmark-q16') }, (flow, o) => {
  const all = bids(siteEvents(flow, o));
  const ofBidders = ofEach(
    all.keyBy((bid): ChannelKey => [bid.channel, bid.bidder]),
    'bidders',
    (sum) => ({ bids: sum, bidders: present(sum), auctions: noRanks }),
  );
  const ofAuctions = ofEach(
    all.keyBy((bid): ChannelKey => [bid.channel, bid.auction]),
    'auctions',
    (sum) => ({ bids: noRanks, bidders: noRanks, auctions: present(sum) }),
  );
  ofBidders
    .union(ofAuctions)
    .keyBy((one) => one.channel)
    .window(days, { uid: 'channel-days' })
    .aggregate({
      accumulator: struct({ lastMs: int64, counts }),
      output: json<{ channel: string; day: string; minute: string } & Counts>(),
      create: () => ({ lastMs: 0, counts: { bids: noRanks, bidders: noRanks, auctions: noRanks } }),
      add: (sum, one) => ({
        lastMs: Math.max(sum.lastMs, one.lastMs),
        counts: {
          bids: plusRanks(sum.counts.bids, one.counts.bids),
          bidders: plusRanks(sum.counts.bidders, one.counts.bidders),
          auctions: plusRanks(sum.counts.auctions, one.counts.auctions),
        },
      }),
      result: (sum, channel, { startMs }) => ({
        channel,
        day: dayOf(startMs),
        minute: new Date(sum.lastMs).toISOString().slice(11, 16),
        ...sum.counts,
      }),
    })
    .to(rowFiles(o), { uid: 'files' });
});

function ofEach(keyed: KeyedStream<ChannelKey, Bid>, uid: string, result: (sum: Ranks) => Counts): Stream<Part> {
  return keyed.window(days, { uid }).aggregate({
    accumulator: struct({ lastMs: int64, sum: ranks }),
    output: part,
    create: () => ({ lastMs: 0, sum: noRanks }),
    add: ({ lastMs, sum }, bid) => ({
      lastMs: Math.max(lastMs, bid.dateTime),
      sum: plusRanks(sum, rankOf(bid.price)),
    }),
    result: ({ lastMs, sum }, [channel]) => ({ channel, lastMs, counts: result(sum) }),
  });
}
