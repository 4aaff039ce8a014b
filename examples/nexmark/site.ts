/*
 * What the queries have in common: their options, the events of the auction site, and the three streams in it. The
 * queries are those of the Nexmark suite as Apache Beam and Flink run it; each file states what its query computes.
 */
import {
  type Auction,
  auctionCodec,
  type Bid,
  bidCodec,
  boundedOutOfOrderness,
  type Flow,
  jsonLines,
  type NexmarkEvent,
  nexmark,
  nexmarkTime,
  type Person,
  personCodec,
  type Sink,
  type Stream,
} from '@millrace/streams';
import { z } from 'zod';

/** The options of the query with this name. */
export function siteOptions<N extends string>(name: N) {
  return z.strictObject({
    /** Directory for the rows. */
    output: z.string().min(1).default(`out/${name}`),
    /** Remove the rows of an earlier run. */
    overwrite: z.boolean().default(false),
    /** 0: without end. */
    events: z.int().min(0).default(100_000),
    /** Of event time: how dense the events lie. */
    eventsPerSecond: z.int().positive().default(1000),
    /** Events may come so much later than others that happened after them. */
    outOfOrdernessMs: z.int().min(0).default(500),
    /** When the first one happens, epoch milliseconds. */
    startMs: z
      .int()
      .min(0)
      .default(Date.UTC(2015, 6, 15)),
    seed: z.int().default(1),
    /** By the machine's clock: how fast they are read. */
    recordsPerSecond: z.number().positive().optional(),
  });
}

export type SiteOptions = z.infer<ReturnType<typeof siteOptions>>;

/** Everything that happens on the site, by event time. */
export function siteEvents(flow: Flow, o: SiteOptions): Stream<NexmarkEvent> {
  const { eventsPerSecond, outOfOrdernessMs, startMs, seed, recordsPerSecond } = o;
  const events = o.events === 0 ? undefined : o.events;
  return flow.from(
    nexmark({ events, eventsPerSecond, outOfOrdernessMs, startMs, seed, recordsPerSecond, splits: 32 }),
    {
      uid: 'events',
      timestamp: nexmarkTime,
      watermarks: boundedOutOfOrderness({ ms: outOfOrdernessMs }, { interval: { ms: 50 } }),
    },
  );
}

export function people(events: Stream<NexmarkEvent>): Stream<Person> {
  return events.flatMap(({ person }) => (person === undefined ? [] : [person]), { codec: personCodec });
}

export function auctions(events: Stream<NexmarkEvent>): Stream<Auction> {
  return events.flatMap(({ auction }) => (auction === undefined ? [] : [auction]), { codec: auctionCodec });
}

export function bids(events: Stream<NexmarkEvent>): Stream<Bid> {
  return events.flatMap(({ bid }) => (bid === undefined ? [] : [bid]), { codec: bidCodec });
}

/** The rows of a query: files of JSON lines, exactly once. */
export function rowFiles<T>(o: SiteOptions): Sink<T> {
  return jsonLines({ directory: o.output, overwrite: o.overwrite });
}
