/*
 * The winning bid of each auction, for queries 4, 6 and 9: the highest that was made from its opening to its end, both
 * included. Among equally high ones the earliest wins, then the lowest bidder. An auction without bids has none.
 *
 * Emitted once, at the auction's end in event time. A bid may arrive before its auction does: it waits until the
 * watermark has reached its own time, when an auction that it could belong to must have come.
 */
import {
  type Auction,
  auctionCodec,
  type Bid,
  bidCodec,
  list,
  type NexmarkEvent,
  type Stream,
  struct,
  value,
} from '@millrace/streams';
import { auctions, bids } from './site.ts';

export interface WinningBid {
  readonly auction: Auction;
  readonly bid: Bid;
}

const winningBid = struct({ auction: auctionCodec, bid: bidCodec });

export function winningBids(events: Stream<NexmarkEvent>): Stream<WinningBid> {
  return auctions(events)
    .keyBy((auction) => auction.id)
    .connect(bids(events).keyBy((bid) => bid.auction))
    .process({
      uid: 'winning-bids',
      state: { auction: value(auctionCodec), best: value(bidCodec), early: list(bidCodec) },
      output: winningBid,
      async onLeft(auction, { state, timers }) {
        const best = (await state.early.get()).filter((bid) => isInTime(bid, auction)).reduce(higher, undefined);
        state.auction.set(auction);
        if (best !== undefined) state.best.set(best);
        state.early.clear();
        timers.at(auction.expires);
      },
      async onRight(bid, { state, timers }) {
        const [auction, best] = await Promise.all([state.auction.get(), state.best.get()]);
        if (auction === undefined) {
          await state.early.add(bid);
          timers.at(bid.dateTime);
        } else if (isInTime(bid, auction)) {
          state.best.set(higher(best, bid));
        }
      },
      async onTimer(timeMs, ctx) {
        const { state } = ctx;
        const [auction, bid, early] = await Promise.all([state.auction.get(), state.best.get(), state.early.get()]);
        if (auction === undefined) {
          state.early.set(early.filter(({ dateTime }) => dateTime > timeMs));
        } else if (auction.expires <= timeMs) {
          if (bid !== undefined) ctx.emit({ auction, bid });
          state.auction.clear();
          state.best.clear();
        }
      },
    });
}

function isInTime(bid: Bid, auction: Auction): boolean {
  return bid.dateTime >= auction.dateTime && bid.dateTime <= auction.expires;
}

/** An order of the bids themselves: which of them came first does not matter. */
function higher(best: Bid | undefined, bid: Bid): Bid {
  if (best === undefined) return bid;
  if (bid.price !== best.price) return bid.price > best.price ? bid : best;
  if (bid.dateTime !== best.dateTime) return bid.dateTime < best.dateTime ? bid : best;
  return bid.bidder < best.bidder ? bid : best;
}
