/*
 * Nexmark 7, highest bid: the highest bid of each ten seconds; equally high ones are all told. First the highest for
 * each auction, by as many subtasks as there are, and then the highest of these.
 */
import { array, type Bid, bidCodec, job, json, tumbling } from '@millrace/streams';
import { bids, rowFiles, siteEvents, siteOptions } from './site.ts';

interface HighestBid {
  readonly auction: number;
  readonly price: number;
  readonly bidder: number;
  readonly dateTime: number;
  readonly extra: string;
}

const every = tumbling({ seconds: 10 });

export default job('nexmark-q7', { options: siteOptions('nexmark-q7') }, (flow, o) => {
  bids(siteEvents(flow, o))
    .keyBy((bid) => bid.auction)
    .window(every, { uid: 'highest-of-auction' })
    .aggregate({
      accumulator: array(bidCodec),
      output: array(bidCodec),
      create: (): readonly Bid[] => [],
      add: (best, bid) => highest(best, [bid]),
      result: (best) => best,
    })
    .keyBy(() => 'all')
    .window(every, { uid: 'highest' })
    .aggregate({
      accumulator: array(bidCodec),
      output: array(bidCodec),
      create: (): readonly Bid[] => [],
      add: highest,
      result: (best) => best,
    })
    .flatMap<HighestBid>(
      (best) =>
        best.map(({ auction, price, bidder, dateTime, extra }) => ({ auction, price, bidder, dateTime, extra })),
      { codec: json() },
    )
    .to(rowFiles(o), { uid: 'files' });
});

/** The highest of both lists, in each of which all are equally high. */
function highest(a: readonly Bid[], b: readonly Bid[]): readonly Bid[] {
  const [left, right] = [a[0]?.price ?? 0, b[0]?.price ?? 0];
  if (left === right) return [...a, ...b];
  return left > right ? a : b;
}
