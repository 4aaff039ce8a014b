/* Queries that look at each bid alone: 0, 1, 2, 13, 14. */
import type { Site } from './site.ts';

export const q0 = ({ bids }: Site): unknown[] =>
  bids.map(({ auction, bidder, price, dateTime, extra }) => ({ auction, bidder, price, dateTime, extra }));

export const q1 = ({ bids }: Site): unknown[] =>
  bids.map(({ auction, bidder, price, dateTime, extra }) => {
    return { auction, bidder, price: (price * 908) / 1000, dateTime, extra };
  });

export function q2({ bids }: Site): unknown[] {
  const rows: unknown[] = [];
  for (const { auction, price } of bids) if (Number.isInteger(auction / 123)) rows.push({ auction, price });
  return rows;
}

export const q13 = ({ bids }: Site): unknown[] =>
  bids.map(({ auction, bidder, price, dateTime }) => {
    return { auction, bidder, price, dateTime, value: `value ${auction % 10_000}` };
  });

export function q14({ bids }: Site): unknown[] {
  const rows: unknown[] = [];
  for (const { auction, bidder, price: dollars, dateTime, extra } of bids) {
    const price = (dollars * 908) / 1000;
    if (price <= 1_000_000 || price >= 50_000_000) continue;
    const hour = Math.floor(dateTime / 3_600_000) % 24;
    const timeOfDay = hour === 7 || hour === 19 ? 'other' : hour < 7 || hour > 19 ? 'night' : 'day';
    let letters = 0;
    for (const letter of extra) if (letter === 'c') letters++;
    rows.push({ auction, bidder, price, timeOfDay, dateTime, extra, letters });
  }
  return rows;
}
