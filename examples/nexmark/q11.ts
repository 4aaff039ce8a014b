/*
 * Nexmark 11, user sessions: how many bids each bidder made in each session, which ends after ten seconds without one.
 */
import { int64, job, json, session } from '@millrace/streams';
import { bids, rowFiles, siteEvents, siteOptions } from './site.ts';

export default job('nexmark-q11', { options: siteOptions('nexmark-q11') }, (flow, o) => {
  bids(siteEvents(flow, o))
    .keyBy((bid) => bid.bidder)
    .window(session({ seconds: 10 }), { uid: 'sessions' })
    .aggregate({
      accumulator: int64,
      output: json<{ bidder: number; bids: number; startMs: number; endMs: number }>(),
      create: () => 0,
      add: (count) => count + 1,
      merge: (left, right) => left + right,
      result: (count, bidder, { startMs, endMs }) => ({ bidder, bids: count, startMs, endMs }),
    })
    .to(rowFiles(o), { uid: 'files' });
});
