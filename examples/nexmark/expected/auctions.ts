/* Queries that bring people, auctions and bids together: 3, 4, 6, 8, 9, 20. */
import type { Auction, Bid } from '@millrace/streams';
import { floorTo, grouped, type Site } from './site.ts';

export function q3({ people, auctions }: Site): unknown[] {
  const near = new Map(people.filter(({ state }) => /^(OR|ID|CA)$/.test(state)).map((person) => [person.id, person]));
  const rows: unknown[] = [];
  for (const { id, seller, category } of auctions) {
    const person = near.get(seller);
    if (category !== 10 || person === undefined) continue;
    rows.push({ name: person.name, city: person.city, state: person.state, auction: id });
  }
  return rows;
}

/** The auctions that had bids in time, each with the best one, in the order in which they end. */
function sold({ auctions, bids }: Site): { readonly auction: Auction; readonly bid: Bid }[] {
  const bidsOf = Map.groupBy(bids, (bid) => bid.auction);
  const found: { auction: Auction; bid: Bid }[] = [];
  for (const auction of auctions) {
    const [bid] = (bidsOf.get(auction.id) ?? [])
      .filter(({ dateTime }) => auction.dateTime <= dateTime && dateTime <= auction.expires)
      .toSorted((a, b) => b.price - a.price || a.dateTime - b.dateTime || a.bidder - b.bidder);
    if (bid !== undefined) found.push({ auction, bid });
  }
  return found.sort((a, b) => a.auction.expires - b.auction.expires || a.auction.id - b.auction.id);
}

export function q4(site: Site): unknown[] {
  const rows: unknown[] = [];
  for (const [category, list] of grouped(sold(site), ({ auction }) => auction.category)) {
    let sum = 0;
    for (const [i, { auction, bid }] of list.entries()) {
      sum += bid.price;
      // Several may end together; the last of them tells.
      if (list[i + 1]?.auction.expires === auction.expires) continue;
      rows.push({ category, endedMs: auction.expires, auctions: i + 1, averagePrice: sum / (i + 1) });
    }
  }
  return rows;
}

export function q6(site: Site): unknown[] {
  const rows: unknown[] = [];
  for (const [seller, list] of grouped(sold(site), ({ auction }) => auction.seller)) {
    for (const [i, { auction }] of list.entries()) {
      let sum = 0;
      const from = Math.max(0, i - 9);
      for (let j = from; j <= i; j++) sum += list[j]?.bid.price ?? 0;
      rows.push({ seller, auction: auction.id, averagePrice: sum / (i + 1 - from) });
    }
  }
  return rows;
}

export function q8({ people, auctions }: Site): unknown[] {
  const opened = new Set(auctions.map(({ seller, dateTime }) => `${seller} ${floorTo(dateTime, 10_000)}`));
  const rows: unknown[] = [];
  for (const { id, name, dateTime } of people) {
    const startMs = floorTo(dateTime, 10_000);
    if (opened.has(`${id} ${startMs}`)) rows.push({ person: id, name, startMs });
  }
  return rows;
}

export const q9 = (site: Site): unknown[] =>
  sold(site).map(({ auction, bid: { bidder, price, dateTime, extra } }) => {
    return { ...auction, bidder, price, bidDateTime: dateTime, bidExtra: extra };
  });

export function q20({ auctions, bids }: Site): unknown[] {
  const ofCategory = new Map(
    auctions.filter(({ category }) => category === 10).map((auction) => [auction.id, auction]),
  );
  const rows: unknown[] = [];
  for (const bid of bids) {
    const auction = ofCategory.get(bid.auction);
    if (auction !== undefined) rows.push({ bid, auction });
  }
  return rows;
}
