/*
 * Nexmark 14, calculation: the bids of more than 10,000 and less than 500,000 euros, with the time of day (UTC) and the
 * number of letters "c" in their extra text.
 */
import { job } from '@millrace/streams';
import { bids, rowFiles, siteEvents, siteOptions } from './site.ts';

export default job('nexmark-q14', { options: siteOptions('nexmark-q14') }, (flow, o) => {
  bids(siteEvents(flow, o))
    .map(({ auction, bidder, price, dateTime, extra }) => ({
      auction,
      bidder,
      price: (price * 908) / 1000,
      timeOfDay: timeOfDay(dateTime),
      dateTime,
      extra,
      letters: extra.split('c').length - 1,
    }))
    .filter((bid) => bid.price > 1_000_000 && bid.price < 50_000_000)
    .to(rowFiles(o), { uid: 'files' });
});

function timeOfDay(timeMs: number): 'day' | 'night' | 'other' {
  const hour = new Date(timeMs).getUTCHours();
  if (hour >= 8 && hour <= 18) return 'day';
  return hour <= 6 || hour >= 20 ? 'night' : 'other';
}
