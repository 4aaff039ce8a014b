/* Event time at a source: a watermark for each split, idleness, alignment. */

import { ManualClock } from '@millrace/kernel/testing';
import { int64, MemoryStateStore, msgpack } from '@millrace/state';
import { describe, expect, test } from 'vitest';
import { job } from '../api/job.ts';
import type { EmitRecord, Source, SourceReader, Split, SplitPosition } from '../api/source.ts';
import { customWatermarks, monotonous, type WatermarkStrategy } from '../api/watermarks.ts';
import { tumbling } from '../api/windows.ts';
import { buildGraph } from '../graph/build-graph.ts';
import type { JobGraph } from '../graph/job-graph.ts';
import type { Poll } from '../runtime/operator.ts';
import type { SlotContext } from '../runtime/slot.ts';
import { callback, collect } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import { LocalCluster } from '../testing/local-cluster.ts';
import { SourceHost } from './source-host.ts';

interface Reading {
  readonly split: string;
  readonly timeMs: number;
}

/** What the splits of a source hold now. A test puts records in, and may end splits. */
class Feed {
  readonly splits: ReadonlyMap<string, number[]>;
  readonly done = new Set<string>();
  /** Readers that wait for records. */
  readonly waiting: (() => void)[] = [];

  constructor(splits: Record<string, number[]>) {
    this.splits = new Map(Object.entries(splits));
  }

  put(split: string, ...timesMs: number[]): void {
    this.splits.get(split)?.push(...timesMs);
    for (const wake of this.waiting.splice(0)) wake();
  }

  source(): Source<Reading> {
    return {
      kind: 'feed',
      codec: msgpack<Reading>(),
      splits: () => Promise.resolve([...this.splits.keys()].map((id, order) => ({ id, order, data: null }))),
      open: (positions) => Promise.resolve(new FeedReader(this, positions)),
    };
  }
}

/** Takes one record of each split in turn. */
class FeedReader implements SourceReader<Reading> {
  readonly #feed: Feed;
  readonly #positions: readonly SplitPosition[];
  #paused: ReadonlySet<string> = new Set();

  constructor(feed: Feed, positions: readonly SplitPosition[]) {
    this.#feed = feed;
    this.#positions = positions;
  }

  read(recordsMax: number, emit: EmitRecord<Reading>): Poll {
    let left = recordsMax;
    for (let found = true; found && left > 0; ) {
      found = false;
      for (const split of this.openSplits()) {
        if (left === 0 || this.#paused.has(split.id)) continue;
        const timeMs = this.#feed.splits.get(split.id)?.shift();
        if (timeMs === undefined) continue;
        emit({ split: split.id, timeMs }, split);
        found = true;
        left--;
      }
    }
    if (left === 0) return 'more';
    if (this.openSplits().length === 0) return 'end';
    return new Promise((resolve) => {
      this.#feed.waiting.push(resolve);
    });
  }

  openSplits(): readonly Split[] {
    return this.#positions.map(({ split }) => split).filter(({ id }) => !this.#feed.done.has(id));
  }

  pause(ids: ReadonlySet<string>): void {
    this.#paused = ids;
  }

  positions(): readonly SplitPosition[] {
    return this.#positions;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

interface Driven {
  /** What the source sends on, in order. */
  readonly sent: string[];
  readonly poll: (recordsMax?: number) => Poll;
}

/** One subtask of a source, polled by hand. */
async function driven(
  feed: Feed,
  watermarks: WatermarkStrategy<Reading>,
  more: { clock?: ManualClock; othersMs?: () => number } = {},
): Promise<Driven> {
  const sent: string[] = [];
  const host = new SourceHost(feed.source(), { timestamp: (one) => one.timeMs, watermarks });
  const { clock = new ManualClock(0), othersMs } = more;
  await host.open({
    slot: { clock, subtask: 0, parallelism: 1 } as unknown as SlotContext,
    uid: 'feed',
    subtask: 0,
    keyGroups: { start: 0, end: 127 },
    output: {
      emit: (value) => void sent.push(`${(value as Reading).split}@${(value as Reading).timeMs}`),
      watermark: (watermarkMs) => void sent.push(`watermark ${watermarkMs}`),
      status: (idle) => void sent.push(idle ? 'idle' : 'active'),
    },
    restoredTables: [],
    restoredList: undefined,
    fail: (error) => {
      throw error;
    },
    ...(othersMs === undefined ? {} : { downstreamWatermarkMs: othersMs }),
  });
  return { sent, poll: (recordsMax = 100) => host.poll(recordsMax) };
}

const exact = { interval: 0 };
const settled = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
};

describe('a source that tells its splits apart', () => {
  test('has the watermark of the slowest split, whichever is read first', async () => {
    const feed = new Feed({ fast: [1000, 1001], slow: [5] });
    const { poll, sent } = await driven(feed, monotonous(exact));
    void poll(1);
    expect(sent).toEqual(['fast@1000']);
    void poll();
    expect(sent).toEqual(['fast@1000', 'fast@1001', 'slow@5', 'watermark 4']);
    feed.put('slow', 900);
    void poll();
    expect(sent.at(-1)).toBe('watermark 899');
  });

  test('is not held back by a split that is done', async () => {
    const feed = new Feed({ fast: [1000], slow: [5] });
    const { poll, sent } = await driven(feed, monotonous(exact));
    void poll();
    feed.done.add('slow');
    void poll();
    expect(sent.at(-1)).toBe('watermark 999');
  });

  test('comes to the same whichever split goes idle first (FLINK-38454)', async () => {
    const ends = await Promise.all(
      [
        ['a', 'b'],
        ['b', 'a'],
      ].map(async ([first, second]) => {
        const clock = new ManualClock(0);
        const feed = new Feed({ a: [10], b: [20] });
        const { poll, sent } = await driven(feed, monotonous({ ...exact, idle: 100 }), { clock });
        void poll();
        clock.advance(60);
        await settled();
        // One of them has another record of the same time, and so goes idle later.
        feed.put(second as string, second === 'a' ? 10 : 20);
        void poll();
        for (let i = 0; i < 4; i++) {
          clock.advance(50);
          await settled();
          void poll();
        }
        expect(first).not.toBe(second);
        return sent.slice(-2);
      }),
    );
    expect(ends).toEqual([
      ['watermark 19', 'idle'],
      ['watermark 19', 'idle'],
    ]);
  });

  test('goes on by the others when one is idle, and is active before its next record', async () => {
    const clock = new ManualClock(0);
    const feed = new Feed({ busy: [10], silent: [] });
    const { poll, sent } = await driven(feed, monotonous({ ...exact, idle: 100 }), { clock });
    void poll();
    for (let i = 1; i <= 3; i++) {
      clock.advance(50);
      await settled();
      feed.put('busy', 10 + i);
      void poll();
    }
    expect(sent).toEqual(['busy@10', 'busy@11', 'busy@12', 'watermark 11', 'busy@13', 'watermark 12']);
    clock.advance(100);
    await settled();
    void poll();
    expect(sent.at(-1)).toBe('idle');
    feed.put('silent', 50);
    void poll();
    expect(sent.slice(-3)).toEqual(['active', 'silent@50', 'watermark 49']);
  });
});

describe('idleness', () => {
  test('is exactly the time of reading and waiting: none passes while full outputs hold the source up (FLINK-40503, FLINK-35886)', async () => {
    const clock = new ManualClock(0);
    const feed = new Feed({ a: [1, 2, 3] });
    const { poll, sent } = await driven(feed, monotonous({ ...exact, idle: 100 }), { clock });
    // There is more to read, but nobody asks for a long time.
    expect(poll(1)).toBe('more');
    clock.advance(100_000);
    void poll(10);
    expect(sent).not.toContain('idle');
    clock.advance(99);
    await settled();
    void poll();
    expect(sent).not.toContain('idle');
    clock.advance(1);
    await settled();
    void poll();
    expect(sent.at(-1)).toBe('idle');
  });

  test('does not begin between the last record of a source and its end', async () => {
    const feed = new Feed({ a: [1, 2] });
    const { poll, sent } = await driven(feed, monotonous({ ...exact, idle: 100 }));
    const times = feed.splits.get('a') as number[];
    times.shift = () => {
      if (times.length === 1) feed.done.add('a');
      return times.splice(0, 1)[0];
    };
    expect(poll(2)).toBe('more');
    expect(poll(2)).toBe('end');
    expect(sent).toEqual(['a@1', 'a@2', 'watermark Infinity']);
  });

  test('of a source that a slow operator holds up never begins: none of its records is late (FLINK-35886)', async () => {
    const records = 60;
    const seen: number[] = [];
    const graph = (): JobGraph =>
      buildGraph(
        job('held', (flow) => {
          const times = (from: number): number[] => Array.from({ length: records }, (_, i) => from + i);
          // The second source would run ahead of the first if that counted as idle.
          const [slow, fast] = [new Feed({ slow: times(0) }), new Feed({ fast: times(100_000) })];
          const watermarks = monotonous({ interval: 0, idle: 20 });
          const stamp = { timestamp: (one: Reading) => one.timeMs, watermarks };
          const all = flow
            .from(slow.source(), { uid: 'slow', ...stamp })
            .union(flow.from(fast.source(), { uid: 'fast', ...stamp }));
          all
            .keyBy((one) => one.split)
            .window(tumbling(10), { uid: 'w' })
            .process({
              output: int64,
              async process(held, { emit }) {
                await new Promise((resolve) => setTimeout(resolve, 10));
                for (const { timeMs } of held) emit(timeMs);
              },
            })
            .to(callback((timeMs) => void seen.push(timeMs)));
        }),
      );
    const cluster = await LocalCluster.start({
      graph,
      store: new MemoryStateStore(),
      settings: { channelWindowBytes: 256, inFlightLimit: 2 },
    });
    for (let i = 0; i < 400 && seen.filter((timeMs) => timeMs < 100_000).length < records - 10; i++) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await cluster.kill();
    await cluster.done.catch(() => undefined);
    const early = seen.filter((timeMs) => timeMs < 100_000);
    expect(early).toEqual(Array.from({ length: early.length }, (_, i) => i));
    expect(early.length).toBeGreaterThanOrEqual(records - 10);
  });
});

describe('alignment', () => {
  const ahead10 = monotonous({ ...exact, aheadMax: 10 });

  test('pauses a split that is too far ahead of the others until they have caught up', async () => {
    const feed = new Feed({ fast: Array.from({ length: 100 }, (_, i) => 10 * i), slow: [0] });
    const { poll, sent } = await driven(feed, ahead10);
    for (let i = 0; i < 30; i++) void poll(2);
    const read = (): number => sent.filter((one) => one.startsWith('fast')).length;
    expect(read()).toBeLessThan(6);
    const before = read();
    feed.put('slow', 500);
    for (let i = 0; i < 100; i++) void poll(2);
    expect(read()).toBeGreaterThan(before + 40);
    expect(read()).toBeLessThan(56);
  });

  test('pauses the whole source when what follows it is further behind, and goes on by itself', async () => {
    const clock = new ManualClock(0);
    let othersMs = 0;
    const feed = new Feed({ a: Array.from({ length: 100 }, (_, i) => 10 * i) });
    const { poll, sent } = await driven(feed, ahead10, { clock, othersMs: () => othersMs });
    for (let i = 0; i < 20; i++) void poll(1);
    expect(sent.filter((one) => one.startsWith('a')).at(-1)).toBe('a@20');
    expect(sent.at(-1)).toBe('watermark 19');
    othersMs = 100;
    for (let i = 0; i < 20; i++) void poll(1);
    expect(sent.filter((one) => one.startsWith('a')).at(-1)).toBe('a@120');
  });

  test('a paused split does not become idle, so its records are not late when it goes on', async () => {
    const clock = new ManualClock(0);
    const feed = new Feed({ fast: [0, 100, 200], slow: [0] });
    const { poll, sent } = await driven(feed, monotonous({ ...exact, aheadMax: 10, idle: 1000 }), { clock });
    for (let i = 0; i < 20; i++) {
      void poll(1);
      clock.advance(40);
      await settled();
    }
    expect(sent).toEqual(['fast@0', 'slow@0', 'watermark -1', 'fast@100']);
    feed.put('slow', 95);
    void poll(1);
    void poll(1);
    expect(sent.slice(4)).toContain('watermark 94');
  });

  test.each([1, 2])(
    'bounds how far a fast source is ahead of a silent one, at parallelism %i (RisingWave #24856)',
    async (parallelism) => {
      const silent = new Feed({ silent0: [0], silent1: [0] });
      const passed: number[] = [];
      const graph = (): JobGraph =>
        buildGraph(
          job('aligned', (flow) => {
            const fast: Source<Reading> = generator({
              record: (i) => ({ split: 'fast', timeMs: i }),
              splits: 2,
            });
            const stamp = {
              timestamp: (one: Reading) => one.timeMs,
              watermarks: monotonous({ interval: 0, aheadMax: 500 }),
            };
            flow
              .from(fast, { uid: 'fast', ...stamp })
              .map((one) => {
                passed.push(one.timeMs);
                return one;
              })
              .union(flow.from(silent.source(), { uid: 'silent', ...stamp }))
              .keyBy((one) => one.timeMs % 8)
              .window(tumbling(100), { uid: 'w' })
              .aggregate({ accumulator: int64, output: int64, create: () => 0, add: (n) => n + 1, result: (n) => n })
              .to(collect<number>([]));
          }),
        );
      const cluster = await LocalCluster.start({ graph, store: new MemoryStateStore(), parallelism });
      const newestMs = (): number => Math.max(-1, ...passed);
      // It has stopped by itself when nothing has passed for a while.
      const stopped = async (beyondMs: number): Promise<void> => {
        for (let quiet = 0, seen = -1; quiet < 20 || newestMs() < beyondMs; quiet++) {
          await new Promise((resolve) => setTimeout(resolve, 5));
          if (passed.length !== seen) quiet = 0;
          seen = passed.length;
        }
      };
      await stopped(100);
      // Near the bound: a batch and a run of the generator are not cut.
      expect(newestMs()).toBeLessThan(900);
      silent.put('silent0', 5000);
      silent.put('silent1', 5000);
      await stopped(4000);
      expect(newestMs()).toBeLessThan(6000);
      await cluster.kill();
      await cluster.done.catch(() => undefined);
    },
  );
});

describe('an idle input', () => {
  test('does not hold back a join (FLINK-18934)', async () => {
    const out: string[] = [];
    const [left, right] = [new Feed({ left: [10, 50] }), new Feed({ right: [12] })];
    const graph = (): JobGraph =>
      buildGraph(
        job('join', (flow) => {
          const watermarks = monotonous({ interval: 0, idle: 30 });
          const stamp = { timestamp: (one: Reading) => one.timeMs, watermarks };
          flow
            .from(left.source(), { uid: 'left', ...stamp })
            .keyBy(() => 'all')
            .windowJoin(
              flow.from(right.source(), { uid: 'right', ...stamp }).keyBy(() => 'all'),
              tumbling(20),
              {
                uid: 'join',
                left: msgpack<Reading>(),
                right: msgpack<Reading>(),
                output: msgpack<string>(),
                pair: (l, r) => `${l.timeMs}-${r.timeMs}`,
              },
            )
            .to(collect(out));
        }),
      );
    const cluster = await LocalCluster.start({ graph, store: new MemoryStateStore() });
    // The right input is silent from the start: the window is over by the left one's time.
    for (let i = 0; i < 100 && out.length === 0; i++) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(out).toEqual(['10-12']);
    await cluster.kill();
    await cluster.done.catch(() => undefined);
  });
});

test('a strategy of one’s own says what the watermark is, by record and by interval', async () => {
  const feed = new Feed({ a: [5, 7, 1000, 8] });
  const strategy = customWatermarks<Reading>(() => {
    let plausibleMs = 0;
    return {
      onRecord(_one, timestampMs) {
        if (timestampMs < 100) plausibleMs = timestampMs;
        return timestampMs === 7 ? 6 : undefined;
      },
      onInterval: () => plausibleMs - 1,
    };
  }, exact);
  const { poll, sent } = await driven(feed, strategy);
  void poll();
  expect(sent).toEqual(['a@5', 'a@7', 'watermark 6', 'a@1000', 'a@8', 'watermark 7']);
});

test('a timestamp that is no number fails the job, naming the source', async () => {
  const feed = new Feed({ a: [Number.NaN] });
  const { poll } = await driven(feed, monotonous());
  expect(() => poll()).toThrow('feed: the timestamp of a record is NaN');
});
