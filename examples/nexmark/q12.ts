/*
 * Nexmark 12, processing-time windows: how many bids of each bidder the job has seen in each ten seconds of the
 * machine's clock. Which window a bid is in depends on the run; that it is in one, and in one only, does not.
 */
import { int64, job, json, tumbling } from '@millrace/streams';
import { bids, rowFiles, siteEvents, siteOptions } from './site.ts';

export default job('nexmark-q12', { options: siteOptions('nexmark-q12') }, (flow, o) => {
  bids(siteEvents(flow, o))
    .keyBy((bid) => bid.bidder)
    .window(tumbling({ seconds: 10 }, { time: 'processing' }), { uid: 'windows' })
    .aggregate({
      accumulator: int64,
      output: json<{ bidder: number; bids: number; startMs: number; endMs: number }>(),
      create: () => 0,
      add: (count) => count + 1,
      result: (count, bidder, { startMs, endMs }) => ({ bidder, bids: count, startMs, endMs }),
    })
    .to(rowFiles(o), { uid: 'files' });
});
