import { int64, optional, string, struct } from '@millrace/state';

/** Somebody who offers items or bids for them. */
export interface Person {
  readonly id: number;
  readonly name: string;
  readonly emailAddress: string;
  readonly creditCard: string;
  readonly city: string;
  readonly state: string;
  readonly dateTime: number;
  readonly extra: string;
}

/** An item that is offered until `expires`. */
export interface Auction {
  readonly id: number;
  readonly itemName: string;
  readonly description: string;
  readonly initialBid: number;
  readonly reserve: number;
  readonly dateTime: number;
  readonly expires: number;
  readonly seller: number;
  readonly category: number;
  readonly extra: string;
}

export interface Bid {
  readonly auction: number;
  readonly bidder: number;
  readonly price: number;
  readonly channel: string;
  readonly url: string;
  readonly dateTime: number;
  readonly extra: string;
}

/** One event of the auction site: exactly one of the three is there. Times are epoch milliseconds, money is in cents. */
export type NexmarkEvent =
  | { readonly person: Person; readonly auction?: undefined; readonly bid?: undefined }
  | { readonly auction: Auction; readonly person?: undefined; readonly bid?: undefined }
  | { readonly bid: Bid; readonly person?: undefined; readonly auction?: undefined };

export const personCodec = struct({
  id: int64,
  name: string,
  emailAddress: string,
  creditCard: string,
  city: string,
  state: string,
  dateTime: int64,
  extra: string,
});

export const auctionCodec = struct({
  id: int64,
  itemName: string,
  description: string,
  initialBid: int64,
  reserve: int64,
  dateTime: int64,
  expires: int64,
  seller: int64,
  category: int64,
  extra: string,
});

export const bidCodec = struct({
  auction: int64,
  bidder: int64,
  price: int64,
  channel: string,
  url: string,
  dateTime: int64,
  extra: string,
});

export const nexmarkCodec = struct({
  person: optional(personCodec),
  auction: optional(auctionCodec),
  bid: optional(bidCodec),
});

/** When an event happened. */
export function nexmarkTime(event: NexmarkEvent): number {
  if (event.bid !== undefined) return event.bid.dateTime;
  return event.auction === undefined ? event.person.dateTime : event.auction.dateTime;
}
