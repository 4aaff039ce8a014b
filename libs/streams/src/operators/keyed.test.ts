import { SeededRandom, systemClock } from '@millrace/kernel';
import {
  catalogStateId,
  int64,
  keyOf,
  MemoryStateStore,
  map,
  msgpack,
  type StateStore,
  string,
  value,
} from '@millrace/state';
import { describe, expect, it } from 'vitest';
import type { Flow } from '../api/flow.ts';
import { job } from '../api/job.ts';
import { sideTag } from '../api/side-tag.ts';
import type { Stream } from '../api/stream.ts';
import { boundedOutOfOrderness, monotonous } from '../api/watermarks.ts';
import { tumbling, windowStart } from '../api/windows.ts';
import { buildGraph } from '../graph/build-graph.ts';
import type { JobGraph } from '../graph/job-graph.ts';
import { collect } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import { SlowStore } from '../testing/slow-store.ts';
import { type TestCheckpoint, TestRun } from '../testing/test-run.ts';
import type { KeyedOperator } from './keyed-operator.ts';

interface Event {
  readonly key: string;
  readonly timeMs: number;
  readonly amount: number;
}

function eventsOf(flow: Flow, events: readonly Event[], boundMs = 0): Stream<Event> {
  return flow.from(generator({ record: (i) => events[i] as Event, records: events.length, splits: 8 }), {
    uid: 'events',
    timestamp: (event) => event.timeMs,
    watermarks: boundMs === 0 ? monotonous({ interval: 0 }) : boundedOutOfOrderness(boundMs, { interval: 0 }),
  });
}

interface Variant {
  readonly name: string;
  readonly workingSetBytes: number;
  store(): StateStore;
}

/** With state at hand, and with state that always has to be fetched, each fetch taking its own time. */
const variants: readonly Variant[] = [
  { name: 'state in memory', workingSetBytes: 1 << 26, store: () => new MemoryStateStore() },
  {
    name: 'state far away',
    workingSetBytes: 1,
    store: () => new SlowStore(new MemoryStateStore(), systemClock, new SeededRandom(5), 1),
  },
];

const graphOf = (build: (flow: Flow) => void): JobGraph => buildGraph(job('test', build));
const events = (count: number): Event[] =>
  Array.from({ length: count }, (_, i) => ({ key: `k${i % 7}`, timeMs: i * 10, amount: i }));

/** Runs with a restore at another parallelism after every few polls; the collected output is cut back as a sink would. */
async function withRestores<T>(
  variant: Variant,
  graph: JobGraph,
  out: T[],
  parallelisms: readonly number[],
  polls: number,
): Promise<{ store: StateStore; checkpoint: TestCheckpoint }> {
  const store = variant.store();
  const { workingSetBytes } = variant;
  let run = await TestRun.start(graph, { store, workingSetBytes, parallelism: parallelisms[0] as number });
  let generation = 1;
  for (const parallelism of parallelisms.slice(1)) {
    await run.step(polls, 40);
    const restore = await run.checkpoint();
    const kept = out.length;
    await run.step(1, 13);
    out.length = kept;
    await run.close();
    run = await TestRun.start(graph, { store, workingSetBytes, parallelism, restore, generation: ++generation });
  }
  return { store, checkpoint: await run.finish() };
}

/** Entries of the job's own states and timers that an operator still has. */
async function entriesLeft(end: { store: StateStore; checkpoint: TestCheckpoint }, uid: string): Promise<number> {
  let count = 0;
  for (const { table, subtask } of end.checkpoint.operators.filter((part) => part.operator === uid)) {
    if (table === undefined) continue;
    const spec = {
      job: 'test',
      operator: uid,
      subtask,
      keyGroups: table.keyGroups,
      maxParallelism: 128,
      generation: 99,
    };
    const opened = await end.store.openTable(spec, [table]);
    for await (const { keys } of opened.scan({ start: new Uint8Array(0) })) {
      for (let i = 0; i < keys.count; i++) {
        // Key group, then state id.
        const at = (keys.offsets[i] as number) + 2;
        if ((keys.bytes[at] as number) * 256 + (keys.bytes[at + 1] as number) !== catalogStateId) count++;
      }
    }
    await opened.close();
  }
  return count;
}

describe.each(variants)('with $name', (variant) => {
  describe('process', () => {
    it('keeps state by key, in order, across restores at other parallelisms', async () => {
      const out: { key: string; total: number; seen: number }[] = [];
      const graph = graphOf((flow) =>
        eventsOf(flow, events(500))
          .keyBy((event) => event.key)
          .process({
            uid: 'totals',
            state: { total: value(int64), seen: map(int64, int64) },
            output: msgpack<{ key: string; total: number; seen: number }>(),
            async onRecord(event, ctx) {
              const total = ((await ctx.state.total.get()) ?? 0) + event.amount;
              const seen = (await ctx.state.seen.get(0)) ?? 0;
              ctx.state.total.set(total);
              ctx.state.seen.set(0, seen + 1);
              ctx.emit({ key: ctx.key, total, seen: seen + 1 });
            },
          })
          .to(collect(out)),
      );
      await withRestores(variant, graph, out, [2, 1, 4], 5);
      const totals = new Map<string, { total: number; seen: number }>();
      for (const { key, amount } of events(500)) {
        const old = totals.get(key) ?? { total: 0, seen: 0 };
        totals.set(key, { total: old.total + amount, seen: old.seen + 1 });
      }
      expect(out).toHaveLength(500);
      for (const [key, last] of totals) {
        const mine = out.filter((result) => result.key === key);
        expect(mine.map((result) => result.seen)).toEqual(mine.map((_, i) => i + 1));
        expect(mine.at(-1)).toEqual({ key, ...last });
      }
    });

    it('fires timers once, in order of time, before the watermark leaves, also after a restore', async () => {
      const out: string[] = [];
      const graph = graphOf((flow) =>
        eventsOf(flow, events(500))
          .keyBy((event) => event.key)
          .process({
            uid: 'alarm',
            output: msgpack<string>(),
            onRecord: (event, ctx) => {
              const nextMs = Math.ceil((event.timeMs + 1) / 1000) * 1000;
              ctx.timers.at(nextMs);
              ctx.timers.at(nextMs);
              ctx.timers.at(nextMs + 1);
              ctx.timers.delete(nextMs + 1);
            },
            onTimer: (timeMs, ctx) => ctx.emit(`${ctx.key}@${timeMs}`),
          })
          .to(collect(out)),
      );
      await withRestores(variant, graph, out, [1, 3, 2], 4);
      const expected = ['k0', 'k1', 'k2', 'k3', 'k4', 'k5', 'k6'].flatMap((key) =>
        [1000, 2000, 3000, 4000, 5000].map((timeMs) => `${key}@${timeMs}`),
      );
      expect(out.toSorted()).toEqual(expected.toSorted());
      for (const key of ['k0', 'k6']) {
        const mine = out.filter((line) => line.startsWith(`${key}@`));
        expect(mine).toEqual(mine.toSorted());
      }
    });

    it('fires the timers that timers set, before time goes on', async () => {
      const out: string[] = [];
      const graph = graphOf((flow) =>
        eventsOf(flow, [{ key: 'a', timeMs: 5, amount: 1 }])
          .keyBy((event) => event.key)
          .process({
            output: msgpack<string>(),
            state: { rounds: value(int64) },
            onRecord: (_event, ctx) => ctx.timers.at(10),
            async onTimer(timeMs, ctx) {
              await new Promise((resolve) => setTimeout(resolve, 1));
              ctx.emit(`${timeMs}`);
              if (timeMs < 50) ctx.timers.at(timeMs + 10);
            },
          })
          .to(collect(out)),
      );
      await (await TestRun.start(graph)).finish();
      expect(out).toEqual(['10', '20', '30', '40', '50']);
    });

    it('hides slow handlers of different keys behind each other, and keeps each key in order', async () => {
      const out: Event[] = [];
      let open = 0;
      let openMax = 0;
      const random = new SeededRandom(7);
      const graph = graphOf((flow) =>
        eventsOf(flow, events(140))
          .keyBy((event) => event.key)
          .process({
            output: msgpack<Event>(),
            async onRecord(event, ctx) {
              openMax = Math.max(openMax, ++open);
              await new Promise((resolve) => setTimeout(resolve, random.below(4)));
              open--;
              ctx.emit(event);
            },
          })
          .to(collect(out)),
      );
      await (await TestRun.start(graph)).finish();
      expect(openMax).toBe(7);
      for (const key of ['k0', 'k3']) {
        const times = out.filter((event) => event.key === key).map((event) => event.timeMs);
        expect(times).toEqual(times.toSorted((a, b) => a - b));
        expect(times).toHaveLength(20);
      }
    });

    it('fails loudly when a handler uses its context after it has ended', async () => {
      const failures: unknown[] = [];
      const graph = graphOf((flow) =>
        eventsOf(flow, events(1))
          .keyBy((event) => event.key)
          .process({
            uid: 'leaky',
            output: msgpack<number>(),
            onRecord: (event, ctx) => {
              setTimeout(() => {
                try {
                  ctx.emit(event.amount);
                } catch (error) {
                  failures.push(error);
                }
              }, 0);
            },
          })
          .to(collect<number>([])),
      );
      await (await TestRun.start(graph)).finish();
      await new Promise((resolve) => setTimeout(resolve, 5));
      expect(failures).toEqual([expect.objectContaining({ code: 'aec-access-after-finish' })]);
    });

    it('ends the run with the first failure of a handler', async () => {
      const graph = graphOf((flow) =>
        eventsOf(flow, events(10))
          .keyBy((event) => event.key)
          .process({
            onRecord: async (event) => {
              await Promise.resolve();
              if (event.amount === 3) throw new Error('no threes');
            },
          })
          .to(collect<never>([])),
      );
      await expect((await TestRun.start(graph)).finish()).rejects.toThrow('no threes');
    });

    it('goes to disk and back when the working set is small', async () => {
      const out: number[] = [];
      const graph = graphOf((flow) =>
        flow
          .from(generator({ record: (i) => i, records: 2000, splits: 4 }))
          .keyBy((n) => n % 1000)
          .aggregate({
            accumulator: int64,
            output: int64,
            create: () => 0,
            add: (count) => count + 1,
            result: (count) => count,
          })
          .to(collect(out)),
      );
      const run = await TestRun.start(graph, { workingSetBytes: 20_000, store: variant.store() });
      await run.finish();
      expect(out.filter((count) => count === 2)).toHaveLength(1000);
      expect(out.filter((count) => count === 1)).toHaveLength(1000);
    });
  });

  describe('tumbling windows', () => {
    const day = 1000;
    interface Sum {
      readonly key: string;
      readonly startMs: number;
      readonly sum: number;
    }
    const late = sideTag<Event>('late');
    function sums(
      list: readonly Event[],
      out: Sum[],
      dropped: Event[],
      options: { boundMs: number; latenessMs: number },
    ) {
      return graphOf((flow) => {
        const windows = eventsOf(flow, list, options.boundMs)
          .keyBy((event) => event.key)
          .window(tumbling(day), { uid: 'sums', allowedLateness: options.latenessMs, late })
          .aggregate({
            accumulator: int64,
            output: msgpack<Sum>(),
            create: () => 0,
            add: (sum, event) => sum + event.amount,
            result: (sum, key, window) => ({ key, startMs: window.startMs, sum }),
          });
        windows.to(collect(out));
        windows.sideOutput(late).to(collect(dropped));
      });
    }

    it('emit each window once, with all its records, across restores, and leave nothing behind', async () => {
      const out: Sum[] = [];
      const end = await withRestores(
        variant,
        sums(events(1000), out, [], { boundMs: 0, latenessMs: 0 }),
        out,
        [2, 3, 1, 2],
        4,
      );
      const expected = new Map<string, Sum>();
      for (const { key, timeMs, amount } of events(1000)) {
        const startMs = Math.floor(timeMs / day) * day;
        const old = expected.get(`${key} ${startMs}`);
        expected.set(`${key} ${startMs}`, { key, startMs, sum: (old?.sum ?? 0) + amount });
      }
      const order = (a: Sum, b: Sum): number => a.startMs - b.startMs || a.key.localeCompare(b.key);
      expect(out.toSorted(order)).toEqual([...expected.values()].toSorted(order));
      expect(await entriesLeft(end, 'sums')).toBe(0);
    });

    it('take late records within the allowed lateness, and send later ones to the side output', async () => {
      const out: Sum[] = [];
      const dropped: Event[] = [];
      const at = (timeMs: number, amount: number): Event => ({ key: 'a', timeMs, amount });
      const list = [at(100, 1), at(1100, 2), at(200, 4), at(1600, 8), at(300, 16), at(2500, 32)];
      const store = variant.store();
      const run = await TestRun.start(sums(list, out, dropped, { boundMs: 0, latenessMs: 500 }), {
        store,
      });
      while (!(await run.step(1, 1)));
      const checkpoint = await run.finish();
      expect(out).toEqual([
        { key: 'a', startMs: 0, sum: 1 },
        { key: 'a', startMs: 0, sum: 5 },
        { key: 'a', startMs: 1000, sum: 10 },
        { key: 'a', startMs: 2000, sum: 32 },
      ]);
      expect(dropped).toEqual([at(300, 16)]);
      expect(await entriesLeft({ store, checkpoint }, 'sums')).toBe(0);
    });

    it('hold windows open for the bound of the out-of-orderness', async () => {
      const out: Sum[] = [];
      const dropped: Event[] = [];
      const random = new SeededRandom(11);
      const list = events(400).map((event) => ({ ...event, timeMs: event.timeMs - random.below(300) }));
      const run = await TestRun.start(sums(list, out, dropped, { boundMs: 300, latenessMs: 0 }), {
        parallelism: 2,
        store: variant.store(),
      });
      while (!(await run.step(1, 7)));
      await run.finish();
      expect(dropped).toEqual([]);
      expect(out.reduce((sum, window) => sum + window.sum, 0)).toBe((400 * 399) / 2);
      expect(new Set(out.map((window) => `${window.key} ${window.startMs}`)).size).toBe(out.length);
    });

    it('drop and count late records when there is no side output', async () => {
      const at = (timeMs: number): Event => ({ key: 'a', timeMs, amount: 1 });
      const graph = graphOf((flow) =>
        eventsOf(flow, [at(100), at(1500), at(200)])
          .keyBy((event) => event.key)
          .window(tumbling(day), { uid: 'w' })
          .reduce((a, b) => ({ ...a, amount: a.amount + b.amount }))
          .to(collect<Event>([])),
      );
      const run = await TestRun.start(graph);
      while (!(await run.step(1, 1)));
      expect((run.operators('w')[0] as KeyedOperator).lateDropped).toBe(1);
      await run.close();
    });

    it('use the offset, before the epoch too', () => {
      const hourly = tumbling({ hours: 1 }, { offset: { minutes: 5 } });
      expect(windowStart(hourly, 0)).toBe(-55 * 60_000);
      expect(windowStart(hourly, 5 * 60_000)).toBe(5 * 60_000);
      expect(windowStart(hourly, -55 * 60_000 - 1)).toBe(-115 * 60_000);
    });
  });

  describe('join', () => {
    it('emits each pair once, whichever side comes first, across restores', async () => {
      interface Line {
        readonly side: 'left' | 'right';
        readonly key: number;
        readonly id: string;
      }
      const random = new SeededRandom(3);
      const lines: Line[] = Array.from({ length: 900 }, (_, i) => ({
        side: random.below(3) === 0 ? 'left' : 'right',
        key: random.below(100),
        id: `${i}`,
      }));
      const out: string[] = [];
      const graph = graphOf((flow) => {
        const all = flow.from(generator({ record: (i) => lines[i] as Line, records: lines.length, splits: 4 }));
        const left = all.filter((line) => line.side === 'left').keyBy((line) => line.key, keyOf<number>());
        const right = all.filter((line) => line.side === 'right').keyBy((line) => line.key, keyOf<number>());
        left
          .join(right, {
            uid: 'join',
            left: { codec: msgpack<Line>(), id: (line) => line.id },
            right: { codec: msgpack<Line>(), id: (line) => line.id },
            ttl: { hours: 1 },
            output: string,
            pair: (l, r, key) => `${key}:${l.id}-${r.id}`,
          })
          .to(collect(out));
      });
      await withRestores(variant, graph, out, [2, 3, 1], 3);
      const expected = lines
        .filter((line) => line.side === 'left')
        .flatMap((l) =>
          lines.filter((r) => r.side === 'right' && r.key === l.key).map((r) => `${l.key}:${l.id}-${r.id}`),
        );
      expect(expected.length).toBeGreaterThan(1000);
      expect(out.toSorted()).toEqual(expected.toSorted());
    });
  });

  describe('intervalJoin', () => {
    it('emits each pair within the bounds once, and keeps nothing for ever', async () => {
      const random = new SeededRandom(21);
      const list: Event[] = Array.from({ length: 300 }, (_, i) => ({
        key: `k${random.below(5)}`,
        timeMs: i * 10 - random.below(50),
        amount: i,
      }));
      const isLeft = (event: Event): boolean => event.amount % 3 === 0;
      const out: string[] = [];
      const graph = graphOf((flow) => {
        const all = eventsOf(flow, list, 50);
        all
          .filter(isLeft)
          .keyBy((event) => event.key)
          .intervalJoin(
            all.filter((event) => !isLeft(event)).keyBy((event) => event.key),
            {
              uid: 'near',
              lower: -100,
              upper: 40,
              left: msgpack<Event>(),
              right: msgpack<Event>(),
              output: string,
              pair: (l, r) => `${l.amount}-${r.amount}`,
            },
          )
          .to(collect(out));
      });
      const end = await withRestores(variant, graph, out, [1, 3, 2], 3);
      const expected = list
        .filter(isLeft)
        .flatMap((l) =>
          list
            .filter((r) => !isLeft(r) && r.key === l.key && r.timeMs - l.timeMs >= -100 && r.timeMs - l.timeMs <= 40)
            .map((r) => `${l.amount}-${r.amount}`),
        );
      expect(expected.length).toBeGreaterThan(150);
      expect(out.toSorted()).toEqual(expected.toSorted());
      expect(await entriesLeft(end, 'near')).toBe(0);
    });
  });
});
