/*
 * Nexmark 5, hot items: which auctions had the most bids in the last ten seconds, told every two seconds. Auctions that
 * share the first place are all told.
 */
import { int64, job, json, sliding, struct, tumbling } from '@millrace/streams';
import { bids, rowFiles, siteEvents, siteOptions } from './site.ts';

interface HotItem {
  readonly startMs: number;
  readonly endMs: number;
  readonly auction: number;
  readonly bids: number;
}

const every = { seconds: 2 };

export default job('nexmark-q5', { options: siteOptions('nexmark-q5') }, (flow, o) => {
  bids(siteEvents(flow, o))
    .keyBy((bid) => bid.auction)
    .window(sliding({ seconds: 10 }, every), { uid: 'counts' })
    .aggregate({
      accumulator: int64,
      output: struct({ startMs: int64, endMs: int64, auction: int64, bids: int64 }),
      create: () => 0,
      add: (count) => count + 1,
      result: (count, auction, { startMs, endMs }) => ({ startMs, endMs, auction, bids: count }),
    })
    // A count has the last timestamp of its window, and exactly one window ends in each two seconds.
    .keyBy((count) => count.endMs)
    .window(tumbling(every), { uid: 'hot' })
    .process({
      output: json<HotItem>(),
      process(counts, ctx) {
        const most = counts.reduce((max, count) => Math.max(max, count.bids), 0);
        for (const count of counts) if (count.bids === most) ctx.emit(count);
      },
    })
    .to(rowFiles(o), { uid: 'files' });
});
