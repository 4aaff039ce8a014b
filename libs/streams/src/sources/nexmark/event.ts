import { type Draw, draw } from './draw.ts';
import type { Auction, Bid, NexmarkEvent, Person } from './model.ts';

export interface NexmarkSettings {
  readonly seed: number;
  readonly startMs: number;
  /** Events per second of event time. */
  readonly eventsPerSecond: number;
  /** An event's time may lie before its place in the order by up to this much. */
  readonly outOfOrdernessMs: number;
}

/** Of each 50 events 1 is a person, 3 are auctions and 46 are bids: 2 %, 6 %, 92 %. */
const people = 1;
const auctions = 3;
const period = 50;
const firstPerson = 1000;
const firstAuction = 1000;
const firstCategory = 10;
const categories = 5;
/** Bids and sellers prefer the newest of these many; ids are never of the future. */
const auctionsInFlight = 100;
const activePeople = 1000;
/** One bid of two goes to the hot auction, three sellers and bidders of four are hot ones. */
const hotAuctionRatio = 2;
const hotPersonRatio = 4;
const hotAuctionEvery = 100;
const hotPersonEvery = 100;

const states = ['AZ', 'CA', 'ID', 'OR', 'WA', 'WY'];
const cities = [
  'Phoenix',
  'Los Angeles',
  'San Francisco',
  'Boise',
  'Portland',
  'Bend',
  'Redmond',
  'Seattle',
  'Kent',
  'Cheyenne',
];
const firstNames = ['Peter', 'Paul', 'Luke', 'John', 'Saul', 'Vicky', 'Kate', 'Julie', 'Sarah', 'Deiter', 'Walter'];
const lastNames = ['Shultz', 'Abrams', 'Spencer', 'White', 'Bartels', 'Walton', 'Smith', 'Jones', 'Noris'];
const channels = ['Google', 'Facebook', 'Baidu', 'Apple'];

/**
 * The event with this index: a pure function, so that a reference can be computed without the stream. Mix, ids and hot
 * keys follow the generator of the Nexmark benchmark (P. Tucker et al., "NEXMark: a benchmark for queries over data
 * streams", 2002, as Apache Beam and Flink run it); the texts are this one's own.
 */
export function nexmarkEvent(index: number, settings: NexmarkSettings): NexmarkEvent {
  const random = draw(settings.seed, index);
  const epoch = Math.floor(index / period);
  const offset = index % period;
  const dateTime = timeOf(index, settings, random);
  if (offset < people) return { person: person(epoch, dateTime, random) };
  if (offset < people + auctions) return { auction: auction(index, dateTime, { random, settings }) };
  return { bid: bid(index, dateTime, random) };
}

function timeOf(index: number, settings: NexmarkSettings, random: Draw): number {
  const ideal = settings.startMs + Math.floor((index * 1000) / settings.eventsPerSecond);
  return settings.outOfOrdernessMs === 0 ? ideal : ideal - random.below(settings.outOfOrdernessMs + 1);
}

/** Ordinal of the newest person among the events up to this one. */
function newestPerson(index: number): number {
  return Math.floor(index / period);
}

/** Ordinal of the newest auction among the events up to this one; −1 before the first. */
function newestAuction(index: number): number {
  const offset = index % period;
  const inPeriod = Math.max(0, Math.min(auctions, offset - people + 1));
  return Math.floor(index / period) * auctions + inPeriod - 1;
}

function person(ordinal: number, dateTime: number, random: Draw): Person {
  const name = `${random.of(firstNames)} ${random.of(lastNames)}`;
  return {
    id: firstPerson + ordinal,
    name,
    emailAddress: `${random.letters(7)}@${random.letters(5)}.com`,
    creditCard: Array.from({ length: 4 }, () => String(random.below(10_000)).padStart(4, '0')).join(' '),
    city: random.of(cities),
    state: random.of(states),
    dateTime,
    extra: random.letters(20),
  };
}

function auction(
  index: number,
  dateTime: number,
  { random, settings }: { readonly random: Draw; readonly settings: NexmarkSettings },
): Auction {
  const initialBid = price(random);
  // As long as it takes for some of the auctions in flight to come.
  const horizonMs = Math.max(1, Math.floor((auctionsInFlight * period * 1000) / auctions / settings.eventsPerSecond));
  return {
    id: firstAuction + newestAuction(index),
    itemName: random.letters(15),
    description: random.letters(60),
    initialBid,
    reserve: initialBid + price(random),
    dateTime,
    expires: dateTime + 1 + random.below(horizonMs * 2),
    seller: somebody(index, random),
    category: firstCategory + random.below(categories),
    extra: random.letters(20),
  };
}

function bid(index: number, dateTime: number, random: Draw): Bid {
  const newest = newestAuction(index);
  const hot = random.below(hotAuctionRatio) > 0;
  const ordinal = hot
    ? Math.floor(newest / hotAuctionEvery) * hotAuctionEvery
    : newest - random.below(Math.min(newest, auctionsInFlight) + 1);
  const channel = random.below(2) === 0 ? random.of(channels) : `channel-${random.below(10_000)}`;
  return {
    auction: firstAuction + Math.max(0, ordinal),
    bidder: somebody(index, random),
    price: price(random),
    channel,
    url: `https://www.nexmark.com/${random.letters(5)}/${random.letters(5)}/item.htm?query=1&channel_id=${random.below(10_000)}`,
    dateTime,
    extra: random.letters(20),
  };
}

/** A person that exists by now. */
function somebody(index: number, random: Draw): number {
  const newest = newestPerson(index);
  const hot = random.below(hotPersonRatio) > 0;
  const ordinal = hot
    ? Math.floor(newest / hotPersonEvery) * hotPersonEvery
    : newest - random.below(Math.min(newest, activePeople) + 1);
  return firstPerson + ordinal;
}

/** Cents; each order of magnitude up to a million dollars is as likely as the others. */
function price(random: Draw): number {
  return Math.round(10 ** (random.fraction() * 6) * 100);
}
