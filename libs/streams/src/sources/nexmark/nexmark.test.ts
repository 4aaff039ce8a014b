import { ByteReader, ByteWriter } from '@millrace/kernel';
import { describe, expect, it } from 'vitest';
import { job } from '../../api/job.ts';
import { buildGraph } from '../../graph/build-graph.ts';
import { collect } from '../../sinks/callback.ts';
import { TestRun } from '../../testing/test-run.ts';
import { nexmarkEvent } from './event.ts';
import { type NexmarkEvent, nexmarkCodec, nexmarkTime } from './model.ts';
import { nexmark, nexmarkSettings } from './nexmark.ts';

const settings = nexmarkSettings();
const events = (count: number, of = settings): NexmarkEvent[] =>
  Array.from({ length: count }, (_, index) => nexmarkEvent(index, of));

describe('Nexmark events', () => {
  it('are 2 % people, 6 % auctions and 92 % bids', () => {
    const all = events(10_000);
    expect(all.filter(({ person }) => person !== undefined)).toHaveLength(200);
    expect(all.filter(({ auction }) => auction !== undefined)).toHaveLength(600);
    expect(all.filter(({ bid }) => bid !== undefined)).toHaveLength(9200);
  });

  it('refer only to people and auctions that came before, whose ids are all different', () => {
    const people = new Set<number>();
    const auctions = new Set<number>();
    const wrong: NexmarkEvent[] = [];
    const add = (ids: Set<number>, id: number): boolean => !ids.has(id) && ids.add(id).has(id);
    for (const event of events(20_000)) {
      const { person, auction, bid } = event;
      const right =
        (person !== undefined && add(people, person.id)) ||
        (auction !== undefined &&
          add(auctions, auction.id) &&
          people.has(auction.seller) &&
          auction.expires > auction.dateTime &&
          auction.reserve > auction.initialBid) ||
        (bid !== undefined && auctions.has(bid.auction) && people.has(bid.bidder));
      if (!right) wrong.push(event);
    }
    expect(wrong).toEqual([]);
  });

  it('prefer hot auctions and people', () => {
    const bids = events(50_000).flatMap(({ bid }) => bid ?? []);
    const counts = Map.groupBy(bids, ({ auction }) => auction);
    const most = Math.max(...[...counts.values()].map((of) => of.length));
    expect(most).toBeGreaterThan(500);
    expect(counts.size).toBeGreaterThan(1000);
  });

  it('are the same for the same index and seed, and others for another seed', () => {
    expect(nexmarkEvent(12_345_678_901, settings)).toEqual(nexmarkEvent(12_345_678_901, settings));
    expect(nexmarkEvent(99, { ...settings, seed: 2 })).not.toEqual(nexmarkEvent(99, settings));
    expect(nexmarkEvent(2 ** 32 + 99, settings)).not.toEqual(nexmarkEvent(99, settings));
  });

  it('are in order of time, or out of order by no more than was asked for', () => {
    const times = events(5000).map(nexmarkTime);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect((times.at(-1) as number) - (times[0] as number)).toBe(499);
    const mixed = events(5000, { ...settings, outOfOrdernessMs: 50 }).map(nexmarkTime);
    let newest = 0;
    let late = 0;
    for (const time of mixed) {
      newest = Math.max(newest, time);
      late = Math.max(late, newest - time);
    }
    expect(late).toBeGreaterThan(40);
    expect(late).toBeLessThanOrEqual(50);
  });

  it('survive their codec', () => {
    for (const event of events(100)) {
      const writer = new ByteWriter();
      nexmarkCodec.encode(event as never, writer);
      expect(nexmarkCodec.decode(new ByteReader(writer.bytes.subarray(0, writer.position)))).toEqual(event);
    }
  });

  it('come from the source once each, across a restore at another parallelism', async () => {
    const all: NexmarkEvent[] = [];
    const graph = buildGraph(
      job('auctions', (flow) => flow.from(nexmark({ events: 3000 }), { uid: 'source' }).to(collect(all))),
    );
    const run = await TestRun.start(graph, { parallelism: 2 });
    await run.step(3, 100);
    const restore = await run.checkpoint();
    const again = await TestRun.start(graph, { parallelism: 3, restore });
    await again.toEnd();
    const text = (list: readonly NexmarkEvent[]): string[] => list.map((one) => JSON.stringify(one)).sort();
    expect(text(all)).toEqual(text(events(3000)));
    await Promise.all([run.close(), again.close()]);
  });
});
