/* Queries by windows of event time: 5, 7, 11. */
import { floorTo, grouped, type Site } from './site.ts';

export function q5({ bids }: Site): unknown[] {
  const windows = new Map<number, Map<number, number>>();
  for (const { auction, dateTime } of bids) {
    for (let startMs = floorTo(dateTime, 2000); startMs > dateTime - 10_000; startMs -= 2000) {
      const counts = windows.get(startMs) ?? new Map<number, number>();
      counts.set(auction, (counts.get(auction) ?? 0) + 1);
      windows.set(startMs, counts);
    }
  }
  const rows: unknown[] = [];
  for (const [startMs, counts] of windows) {
    const most = Math.max(...counts.values());
    for (const [auction, count] of counts) {
      if (count === most) rows.push({ startMs, endMs: startMs + 10_000, auction, bids: count });
    }
  }
  return rows;
}

export function q7({ bids }: Site): unknown[] {
  const rows: unknown[] = [];
  for (const [, inWindow] of grouped(bids, ({ dateTime }) => floorTo(dateTime, 10_000))) {
    const most = inWindow.reduce((max, { price }) => Math.max(max, price), 0);
    for (const { auction, price, bidder, dateTime, extra } of inWindow) {
      if (price === most) rows.push({ auction, price, bidder, dateTime, extra });
    }
  }
  return rows;
}

export function q11({ bids }: Site): unknown[] {
  const rows: unknown[] = [];
  for (const [bidder, list] of grouped(bids, (bid) => bid.bidder)) {
    let session: { bidder: number; bids: number; startMs: number; endMs: number } | undefined;
    for (const timeMs of list.map(({ dateTime }) => dateTime).sort((a, b) => a - b)) {
      if (session === undefined || timeMs >= session.endMs) {
        session = { bidder, bids: 0, startMs: timeMs, endMs: 0 };
        rows.push(session);
      }
      session.bids++;
      session.endMs = timeMs + 10_000;
    }
  }
  return rows;
}
