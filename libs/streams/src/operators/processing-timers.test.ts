/* Timers of processing time, as their users see them. */

import { ManualClock } from '@millrace/kernel/testing';
import { int64, MemoryStateStore, msgpack, value } from '@millrace/state';
import { describe, expect, test } from 'vitest';
import { job } from '../api/job.ts';
import type { KeyedContext } from '../api/process.ts';
import { buildGraph } from '../graph/build-graph.ts';
import type { JobGraph } from '../graph/job-graph.ts';
import { collect } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import { type TestCheckpoint, TestRun } from '../testing/test-run.ts';

interface Fired {
  readonly key: number;
  readonly atMs: number;
  readonly nowMs: number;
}

type Ctx = KeyedContext<number, { seen: ReturnType<typeof value<number>> }, Fired>;

/** Each record sets timers; each timer says when it has fired. */
function alarms(out: Fired[], records: number, onRecord: (n: number, ctx: Ctx) => void): JobGraph {
  return buildGraph(
    job('alarms', (flow) => {
      flow
        .from(generator({ record: (n) => n, records, splits: 4 }), { uid: 'numbers' })
        .keyBy((n) => n)
        .process({
          uid: 'alarms',
          state: { seen: value(int64) },
          output: msgpack<Fired>(),
          onRecord,
          onProcessingTimer: (atMs, ctx) => ctx.emit({ key: ctx.key, atMs, nowMs: ctx.processingMs }),
        })
        .to(collect(out));
    }),
  );
}

const endless = 1_000_000_000;

/** What has fallen due fires, and what that emits arrives. */
async function settle(run: TestRun, clock: ManualClock, turnMs = 0): Promise<void> {
  for (let i = 0; i < 20; i++) {
    clock.advance(turnMs);
    await run.step(1, 0);
  }
}

async function started(
  graph: JobGraph,
  clock: ManualClock,
  more: { store?: MemoryStateStore; restore?: TestCheckpoint; parallelism?: number; generation?: number } = {},
): Promise<TestRun> {
  return await TestRun.start(graph, { clock, ...more });
}

describe('a timer of processing time', () => {
  test('never fires a millisecond early, whatever the machine’s timer does (FLINK-9857)', async () => {
    /** Calls back one millisecond before the time, as timers of real machines may. */
    class HastyClock extends ManualClock {
      override schedule(delayMs: number, callback: () => void): ReturnType<ManualClock['schedule']> {
        return super.schedule(delayMs > 1 ? delayMs - 1 : delayMs, callback);
      }
    }
    const clock = new HastyClock(1000);
    const out: Fired[] = [];
    const run = await started(
      alarms(out, endless, (_n, ctx) => ctx.processingTimers.at(1100)),
      clock,
    );
    await run.step(1, 1);
    clock.advance(99);
    await settle(run, clock);
    expect(out).toEqual([]);
    clock.advance(1);
    await settle(run, clock);
    expect(out).toEqual([{ key: 0, atMs: 1100, nowMs: 1100 }]);
    await run.close();
  });

  test('that is registered later for an earlier time is not waited over (Restate #5093)', async () => {
    const clock = new ManualClock(0);
    const out: Fired[] = [];
    const run = await started(
      alarms(out, endless, (n, ctx) => ctx.processingTimers.at(n === 0 ? 50_000 : 100)),
      clock,
    );
    await run.step(1, 1);
    await run.step(1, 1);
    clock.advance(100);
    await settle(run, clock);
    expect(out).toEqual([{ key: 1, atMs: 100, nowMs: 100 }]);
    await run.close();
  });

  test('is one for each key and time, and can be taken back', async () => {
    const clock = new ManualClock(0);
    const out: Fired[] = [];
    const graph = alarms(out, endless, (_n, ctx) => {
      for (const timeMs of [10, 10, 20, 10]) ctx.processingTimers.at(timeMs);
      ctx.processingTimers.delete(20);
    });
    const run = await started(graph, clock);
    await run.step(1, 2);
    clock.advance(100);
    await settle(run, clock);
    expect(new Set(out.map(({ key, atMs }) => `${key} ${atMs}`))).toEqual(new Set(['0 10', '1 10']));
    expect(out).toHaveLength(2);
    await run.close();
  });

  test('is in the checkpoint: what fell due meanwhile fires at once after a restore at another parallelism', async () => {
    const clock = new ManualClock(0);
    const store = new MemoryStateStore();
    const out: Fired[] = [];
    const graph = alarms(out, endless, (n, ctx) => ctx.processingTimers.at(100 + n));
    const first = await started(graph, clock, { store });
    await first.step(1, 50);
    const restore = await first.checkpoint();
    await first.close();
    clock.advance(120);
    const second = await started(graph, clock, { store, restore, parallelism: 3, generation: 2 });
    await settle(second, clock);
    expect(new Set(out.map(({ atMs }) => atMs))).toEqual(new Set(Array.from({ length: 21 }, (_, n) => 100 + n)));
    expect(out).toHaveLength(21);
    clock.advance(1000);
    await settle(second, clock);
    expect(new Set(out.map(({ key }) => key)).size).toBe(50);
    expect(out).toHaveLength(50);
    await second.close();
  });

  test('that is not due when the input ends does not fire, and does not hold the job up', async () => {
    const out: Fired[] = [];
    const run = await started(
      alarms(out, 10, (_n, ctx) => ctx.processingTimers.at(3_600_000)),
      new ManualClock(0),
    );
    expect((await run.finish()).ended).toBe(true);
    expect(out).toEqual([]);
  });
});

describe('ten thousand overdue timers', () => {
  const many = 10_000;
  const set = (_n: number, ctx: Ctx): void => ctx.processingTimers.at(5);

  test('fire together, not one per tick (FLINK-23208)', async () => {
    const clock = new ManualClock(0);
    const out: Fired[] = [];
    const run = await started(alarms(out, endless, set), clock);
    await run.step(many / 1000, 1000);
    clock.advance(5);
    // No time passes from here on.
    await settle(run, clock);
    expect(out).toHaveLength(many);
    expect(new Set(out.map(({ nowMs }) => nowMs))).toEqual(new Set([5]));
    await run.close();
  });

  test('let a checkpoint pass between them, which holds those that have not fired (FLINK-38810)', async () => {
    /** What is scheduled at once has its turn a millisecond later. */
    class TurnClock extends ManualClock {
      override schedule(delayMs: number, callback: () => void): ReturnType<ManualClock['schedule']> {
        return super.schedule(Math.max(1, delayMs), callback);
      }
    }
    const clock = new TurnClock(0);
    const store = new MemoryStateStore();
    const [before, after]: [Fired[], Fired[]] = [[], []];
    const run = await started(alarms(before, endless, set), clock, { store });
    await run.step(many / 1000, 1000);
    // Fires the first batch; the next one has its turn later.
    clock.advance(5);
    const restore = await run.checkpoint();
    const fired = before.length;
    expect(fired).toBeGreaterThan(0);
    expect(fired).toBeLessThan(many);
    await run.close();
    const again = await started(alarms(after, endless, set), clock, { store, restore, generation: 2 });
    clock.advance(100);
    await settle(again, clock, 1);
    expect(before.length).toBe(fired);
    expect(new Set([...before, ...after].map(({ key }) => key)).size).toBe(many);
    expect(fired + after.length).toBe(many);
    await again.close();
  });
});
