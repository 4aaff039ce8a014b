/*
 * The events of a run as plain arrays, and what loops over them need. Nothing of Millrace is in the reference but the
 * events themselves, each of which is a function of its index.
 */
import { type Auction, type Bid, nexmarkEvent, nexmarkSettings, type Person } from '@millrace/streams';

export interface Site {
  readonly people: readonly Person[];
  readonly auctions: readonly Auction[];
  readonly bids: readonly Bid[];
}

export interface SiteSettings {
  readonly events: number;
  readonly eventsPerSecond: number;
  readonly outOfOrdernessMs: number;
  readonly startMs: number;
}

export function siteOf({ events, ...options }: SiteSettings): Site {
  const settings = nexmarkSettings(options);
  const people: Person[] = [];
  const auctions: Auction[] = [];
  const bids: Bid[] = [];
  for (let index = 0; index < events; index++) {
    const { person, auction, bid } = nexmarkEvent(index, settings);
    if (person !== undefined) people.push(person);
    if (auction !== undefined) auctions.push(auction);
    if (bid !== undefined) bids.push(bid);
  }
  return { people, auctions, bids };
}

/** What `list` holds for each key. */
export function grouped<K, T>(list: Iterable<T>, key: (item: T) => K): [K, T[]][] {
  return [...Map.groupBy(list, key)];
}

export function floorTo(timeMs: number, sizeMs: number): number {
  return timeMs - (timeMs % sizeMs);
}
