/* Windows as their users see them; `windows.prop.ts` compares them with a loop over the records. */
import { ManualClock } from '@millrace/kernel/testing';
import { array, catalogStateId, int64, json, MemoryStateStore, msgpack } from '@millrace/state';
import { describe, expect, test } from 'vitest';
import type { WindowOptions } from '../api/aggregate.ts';
import { job } from '../api/job.ts';
import type { KeyedStream } from '../api/keyed-stream.ts';
import { sideTag } from '../api/side-tag.ts';
import type { Stream } from '../api/stream.ts';
import { trigger } from '../api/trigger.ts';
import { boundedOutOfOrderness, perRecord } from '../api/watermarks.ts';
import { countWindow, cumulative, globalWindow, session, sliding, tumbling } from '../api/windows.ts';
import { buildGraph } from '../graph/build-graph.ts';
import type { JobGraph } from '../graph/job-graph.ts';
import { collect } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import { type TestCheckpoint, TestRun } from '../testing/test-run.ts';

interface Item {
  readonly id: number;
  readonly timeMs: number;
  readonly watermarkMs?: number;
}
interface Sum {
  readonly startMs: number;
  readonly endMs: number;
  readonly ids: readonly number[];
}

const at = (id: number, timeMs: number, watermarkMs?: number): Item => ({
  id,
  timeMs,
  ...(watermarkMs === undefined ? {} : { watermarkMs }),
});
const late = sideTag<Item>('late');

type Keyed = KeyedStream<string, Item>;
type Windowed = (keyed: Keyed) => Stream<Sum>;

/** The ids of each window's records. */
const ids = {
  accumulator: array(int64),
  output: msgpack<Sum>(),
  create: (): readonly number[] => [],
  add: (all: readonly number[], item: Item): readonly number[] => [...all, item.id],
  merge: (left: readonly number[], right: readonly number[]): readonly number[] => [...left, ...right],
  result: (all: readonly number[], _key: string, { startMs, endMs }: { startMs: number; endMs: number }): Sum => ({
    startMs,
    endMs,
    ids: all,
  }),
};

function graphOf(items: readonly Item[], out: Sum[], windowed: Windowed, dropped: Item[] = []): JobGraph {
  return buildGraph(
    job('windows', (flow) => {
      const results = windowed(
        flow
          .from(generator({ record: (i) => items[i] as Item, records: items.length, splits: 1 }), {
            uid: 'items',
            timestamp: (item) => item.timeMs,
            watermarks: perRecord<Item>((item) => item.watermarkMs, { interval: 0 }),
          })
          .keyBy(() => 'all'),
      );
      results.to(collect(out));
      results.sideOutput(late).to(collect(dropped));
    }),
  );
}

async function results(items: readonly Item[], windowed: Windowed, dropped: Item[] = []): Promise<Sum[]> {
  const out: Sum[] = [];
  const store = new MemoryStateStore();
  const run = await TestRun.start(graphOf(items, out, windowed, dropped), { store });
  while (!(await run.step(1, 1)));
  expect(await entriesLeft(store, await run.finish())).toBe(0);
  return out;
}

/** States and timers that are left in the last checkpoint. */
async function entriesLeft(store: MemoryStateStore, { operators }: TestCheckpoint): Promise<number> {
  let count = 0;
  for (const { operator, subtask, table } of operators) {
    if (table === undefined) continue;
    const { keyGroups } = table;
    const spec = { job: 'windows', operator, subtask, keyGroups, maxParallelism: 128, generation: 99 };
    const opened = await store.openTable(spec, [table]);
    for await (const { keys } of opened.scan({ start: new Uint8Array(0) })) {
      for (let i = 0; i < keys.count; i++) {
        const idAt = (keys.offsets[i] as number) + 2;
        if ((keys.bytes[idAt] as number) * 256 + (keys.bytes[idAt + 1] as number) !== catalogStateId) count++;
      }
    }
    await opened.close();
  }
  return count;
}

const sum = (startMs: number, endMs: number, ...all: number[]): Sum => ({ startMs, endMs, ids: all });

describe('sliding windows', () => {
  test('that have emitted do not emit again after a restore (FLINK-36663)', async () => {
    const items = [at(0, 5, 4), at(1, 18, 17), at(2, 7), at(3, 25, 24)];
    const windowed: Windowed = (keyed) => keyed.window(sliding(20, 10), { uid: 'w', late }).aggregate(ids);
    const undisturbed = await results(items, windowed);
    for (const parallelism of [1, 3]) {
      const [out, dropped]: [Sum[], Item[]] = [[], []];
      const store = new MemoryStateStore();
      const graph = graphOf(items, out, windowed, dropped);
      const first = await TestRun.start(graph, { store });
      await first.step(2, 1);
      const restore = await first.checkpoint();
      await first.close();
      const second = await TestRun.start(graph, { store, restore, parallelism, generation: 2 });
      await second.step(1, 0);
      await second.finish();
      expect(out).toEqual(undisturbed);
    }
    // The window [-10, 10) was over when 7 came, the one after it takes it.
    expect(undisturbed).toEqual([sum(-10, 10, 0), sum(0, 20, 0, 1, 2), sum(10, 30, 1, 3), sum(20, 40, 3)]);
  });

  test('with a gap between them leave records out', async () => {
    const windowed: Windowed = (keyed) => keyed.window(sliding(5, 10), { uid: 'w', late }).aggregate(ids);
    const dropped: Item[] = [];
    expect(await results([at(0, 4), at(1, 5), at(2, 12, 100)], windowed, dropped)).toEqual([
      sum(0, 5, 0),
      sum(10, 15, 2),
    ]);
  });
});

test('cumulative windows grow from one start and begin anew', async () => {
  const windowed: Windowed = (keyed) => keyed.window(cumulative(30, 10), { uid: 'w', late }).aggregate(ids);
  expect(await results([at(0, 1), at(1, 11), at(2, 31)], windowed)).toEqual([
    sum(0, 10, 0),
    sum(0, 20, 0, 1),
    sum(0, 30, 0, 1),
    sum(30, 40, 2),
    sum(30, 50, 2),
    sum(30, 60, 2),
  ]);
});

describe('a session', () => {
  const gap10 =
    (options: WindowOptions<Item> = {}): Windowed =>
    (keyed) =>
      keyed.window(session(10), { uid: 'w', late, ...options }).aggregate(ids);

  test('fires nothing empty for a late record (FLINK-4134)', async () => {
    const dropped: Item[] = [];
    expect(await results([at(0, 0, 50), at(1, 20), at(2, 100, 99)], gap10(), dropped)).toEqual([
      sum(0, 10, 0),
      sum(100, 110, 2),
    ]);
    expect(dropped.map(({ id }) => id)).toEqual([1]);
  });

  test('that became part of another leaves no trigger of its own behind (FLINK-4863)', async () => {
    // Two sessions, joined by the third record: one result, at the end of the whole.
    expect(await results([at(0, 0), at(1, 16), at(2, 8, 24), at(3, 40, 39)], gap10())).toEqual([
      sum(0, 26, 0, 1, 2),
      sum(40, 50, 3),
    ]);
  });

  test('that became part of another brings along what its trigger has counted, and its timers go (FLINK-4863)', async () => {
    const counted = trigger({
      state: json<number>(),
      create: () => 0,
      onRecord: (_item: Item, seen, { window }) => ({
        state: seen + 1,
        emit: seen + 1 === 3,
        timerMs: window.startMs + 3,
      }),
      onTime: () => ({ emit: true }),
      merge: (left, right) => left + right,
    });
    const windowed = gap10({ trigger: counted });
    // At the third record the count of both is 3; the timers at 3 and 19 have become the one at 3.
    expect(await results([at(0, 0), at(1, 16), at(2, 8, 4), at(3, 60, 59)], windowed)).toEqual([
      sum(0, 26, 0, 1, 2),
      sum(0, 26, 0, 1, 2),
      sum(0, 26, 0, 1, 2),
      sum(60, 70, 3),
      sum(60, 70, 3),
    ]);
  });

  test('goes on when a late record within the allowed lateness makes it longer', async () => {
    const items = [at(0, 0, 12), at(1, 5), at(2, 60, 59)];
    expect(await results(items, gap10({ allowedLateness: 20 }))).toEqual([
      sum(0, 10, 0),
      sum(0, 15, 0, 1),
      sum(60, 70, 2),
    ]);
  });

  test('takes the gap of each record', async () => {
    const windowed: Windowed = (keyed) =>
      keyed
        .window(
          session<Item>((item) => (item.id === 0 ? 100 : 10)),
          { uid: 'w', late },
        )
        .aggregate(ids);
    expect(await results([at(0, 0), at(1, 90), at(2, 99, 108), at(3, 109)], windowed)).toEqual([
      sum(0, 109, 0, 1, 2),
      sum(109, 119, 3),
    ]);
  });

  test('hands all of its records to a function, in order', async () => {
    const windowed: Windowed = (keyed) =>
      keyed.window(session(10), { uid: 'w', late }).process<Sum>({
        output: msgpack<Sum>(),
        process: (records, { window, emit }) => emit({ ...window, ids: records.map(({ id }) => id) }),
      });
    expect(await results([at(0, 0), at(1, 16), at(2, 8, 35), at(3, 40)], windowed)).toEqual([
      sum(0, 26, 0, 1, 2),
      sum(40, 50, 3),
    ]);
  });
});

describe('a batch of old and new records', () => {
  test('suppresses no window: the watermark follows all of the batch (Arroyo #829, #596)', async () => {
    const out: Sum[] = [];
    const times = [1000, 5, 2000, 15, 3, 1001];
    const graph = buildGraph(
      job('batch', (flow) => {
        flow
          .from(
            generator({ record: (id) => ({ id, timeMs: times[id] as number }), records: times.length, splits: 1 }),
            {
              timestamp: (item) => item.timeMs,
              watermarks: boundedOutOfOrderness(0, { interval: 0 }),
            },
          )
          .keyBy(() => 'all')
          .window(tumbling(10), { uid: 'w' })
          .aggregate(ids)
          .to(collect(out));
      }),
    );
    const run = await TestRun.start(graph);
    await run.step(1, times.length);
    await run.finish();
    expect(out).toEqual([sum(0, 10, 1, 4), sum(10, 20, 3), sum(1000, 1010, 0, 5), sum(2000, 2010, 2)]);
  });
});

describe('by processing time', () => {
  const processing = { time: 'processing' } as const;

  async function timed(windowed: Windowed, steps: readonly number[]): Promise<{ out: Sum[]; clock: ManualClock }> {
    const clock = new ManualClock(1000);
    const out: Sum[] = [];
    const store = new MemoryStateStore();
    const items = steps.map((_, id) => at(id, 0));
    const run = await TestRun.start(graphOf(items, out, windowed), { clock, store });
    for (const stepMs of steps) {
      await run.step(1, 1);
      clock.advance(stepMs);
      await run.checkpoint();
    }
    expect(await entriesLeft(store, await run.finish())).toBe(0);
    return { out, clock };
  }

  test('tumbling windows emit when the clock has reached their end, and what is open when the input ends', async () => {
    const windowed: Windowed = (keyed) => keyed.window(tumbling(10, processing), { uid: 'w' }).aggregate(ids);
    const { out } = await timed(withLate(windowed), [5, 4, 1, 3]);
    expect(out).toEqual([sum(1000, 1010, 0, 1, 2), sum(1010, 1020, 3)]);
  });

  test('sliding windows and sessions emit when the clock has reached their end', async () => {
    const slid = await timed(
      withLate((keyed) => keyed.window(sliding(20, 10, processing), { uid: 'w' }).aggregate(ids)),
      [10, 30],
    );
    expect(slid.out).toEqual([sum(990, 1010, 0), sum(1000, 1020, 0, 1), sum(1010, 1030, 1)]);
    const sessions = await timed(
      withLate((keyed) => keyed.window(session(10, processing), { uid: 'w' }).aggregate(ids)),
      [9, 9, 10, 5],
    );
    expect(sessions.out).toEqual([sum(1000, 1028, 0, 1, 2), sum(1028, 1038, 3)]);
  });

  test('an event-time window emits early, so long after its first record that was not emitted', async () => {
    const windowed: Windowed = (keyed) =>
      keyed.window(tumbling(100), { uid: 'w', early: { every: 10 } }).aggregate(ids);
    const { out } = await timed(withLate(windowed), [4, 20, 20, 3]);
    expect(out.map((one) => one.ids)).toEqual([
      [0, 1],
      [0, 1, 2],
      [0, 1, 2, 3],
    ]);
  });
});

/** Without `late`, which not all windows take: its side output stays empty. */
function withLate(windowed: Windowed): Windowed {
  return windowed;
}

describe('triggers', () => {
  test('early firing emits at every so many records, and the end emits as always', async () => {
    const windowed: Windowed = (keyed) =>
      keyed.window(tumbling(100), { uid: 'w', late, early: { records: 2 } }).aggregate(ids);
    expect(await results([at(0, 1), at(1, 2), at(2, 3)], windowed)).toEqual([sum(0, 100, 0, 1), sum(0, 100, 0, 1, 2)]);
  });

  test('a global window emits and forgets when its trigger says so, and is asked at the end of the input', async () => {
    const evenIds = trigger({
      state: json<number>(),
      create: () => 0,
      onRecord: (item: Item, seen) => ({ state: seen + 1, emit: item.id % 2 === 1, clear: item.id % 2 === 1 }),
      onEnd: (seen) => ({ emit: seen > 0, clear: true }),
    });
    const [out, store]: [Sum[], MemoryStateStore] = [[], new MemoryStateStore()];
    const graph = graphOf(
      [0, 1, 2].map((id) => at(id, 0)),
      out,
      (keyed) => keyed.window(globalWindow(), { uid: 'w', trigger: evenIds }).aggregate(ids),
    );
    await (await TestRun.start(graph, { store })).finish();
    expect(out.map((one) => one.ids)).toEqual([[0, 1], [2]]);
  });

  test('count windows take the last records, in arrival order', async () => {
    const out: Sum[] = [];
    const graph = graphOf(
      [0, 1, 2, 3, 4].map((id) => at(id, 0)),
      out,
      (keyed) => keyed.window(countWindow(3, { every: 2 }), { uid: 'w' }).aggregate(ids),
    );
    await (await TestRun.start(graph)).finish();
    expect(out.map((one) => one.ids)).toEqual([
      [0, 1],
      [1, 2, 3],
    ]);
  });
});

describe('what does not go together is refused in words while the job is built', () => {
  test.each<readonly [string, Windowed]>([
    [
      'sessions may become one; the aggregate needs merge',
      (keyed) => keyed.window(session(5)).aggregate({ ...ids, merge: undefined as never }),
    ],
    [
      'it has both early and a trigger',
      (keyed) =>
        keyed
          .window(tumbling(5), {
            early: { records: 1 },
            trigger: { state: int64, create: () => 0, onRecord: () => ({}) },
          })
          .aggregate(ids),
    ],
    [
      'they take no allowedLateness and no late',
      (keyed) => keyed.window(tumbling(5, { time: 'processing' }), { allowedLateness: 5 }).aggregate(ids),
    ],
    [
      'count windows have no end in time; they take no early',
      (keyed) => keyed.window(countWindow(5), { early: { records: 1 } }).aggregate(ids),
    ],
    ['no multiple of the step', (keyed) => keyed.window(cumulative(5, 2)).aggregate(ids)],
    [
      'early.records must be a whole number',
      (keyed) => keyed.window(tumbling(5), { early: { records: 0 } }).aggregate(ids),
    ],
  ])('%s', (message, windowed) => {
    expect(() => graphOf([], [], windowed)).toThrow(message);
  });
});
