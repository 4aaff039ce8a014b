/* Event time goes on where the checkpoint was: the output is as if nothing had failed (FLINK-36663). */
import { int64, MemoryStateStore, msgpack } from '@millrace/state';
import { describe, expect, it } from 'vitest';
import { job } from '../api/job.ts';
import { sideTag } from '../api/side-tag.ts';
import { boundedOutOfOrderness } from '../api/watermarks.ts';
import { tumbling } from '../api/windows.ts';
import { buildGraph } from '../graph/build-graph.ts';
import type { JobGraph } from '../graph/job-graph.ts';
import type { OperatorSnapshot } from '../runtime/slot.ts';
import { collect } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import { TestRun } from '../testing/test-run.ts';
import { restoredWatermarkMs, storedWatermark } from './stored-watermark.ts';

interface Count {
  readonly startMs: number;
  readonly count: number;
}
interface Reading {
  readonly id: number;
  readonly timeMs: number;
}

const sizeMs = 10_000;
const records = 256;
/** The first record after the checkpoint comes far too late. */
const lateId = 128;
const timeOf = (id: number): number => (id === lateId ? 5000 : id * 1000);
const late = sideTag<Reading>('late');

/** Counts by window, and counts of these counts by larger windows. */
function countsOf(out: Count[], dropped: Reading[], larger: Count[]): JobGraph {
  return buildGraph(
    job('time', (flow) => {
      const counts = flow
        .from(generator({ record: (id) => ({ id, timeMs: timeOf(id) }), records, splits: 2 }), {
          uid: 'readings',
          timestamp: (reading) => reading.timeMs,
          watermarks: boundedOutOfOrderness(0, { interval: 0 }),
        })
        .keyBy(() => 'all')
        .window(tumbling(sizeMs), { uid: 'counts', late })
        .aggregate({
          accumulator: int64,
          output: msgpack<Count>(),
          create: () => 0,
          add: (count) => count + 1,
          result: (count, _key, window) => ({ startMs: window.startMs, count }),
        });
      counts.to(collect(out));
      counts.sideOutput(late).to(collect(dropped));
      counts
        .keyBy(() => 'all')
        .window(tumbling(4 * sizeMs), { uid: 'larger' })
        .aggregate({
          accumulator: int64,
          output: msgpack<Count>(),
          create: () => 0,
          add: (count, one) => count + one.count,
          result: (count, _key, window) => ({ startMs: window.startMs, count }),
        })
        .to(collect(larger));
    }),
  );
}

async function outcome(restores: readonly number[]): Promise<unknown> {
  const [out, dropped, larger]: [Count[], Reading[], Count[]] = [[], [], []];
  const graph = countsOf(out, dropped, larger);
  const store = new MemoryStateStore();
  let run = await TestRun.start(graph, { parallelism: 2, store });
  await run.step(1, lateId / 2);
  for (const [i, parallelism] of restores.entries()) {
    const restore = await run.checkpoint();
    await run.close();
    run = await TestRun.start(graph, { parallelism, store, restore, generation: 2 + i });
  }
  await run.toEnd(lateId / 2);
  await run.close();
  const order = (a: Count, b: Count): number => a.startMs - b.startMs;
  return { out: out.toSorted(order), dropped, larger: larger.toSorted(order) };
}

describe('a window that has emitted', () => {
  it.each([[[2]], [[1]], [[2, 3, 2]]])(
    'does not emit again for late records after restores at the parallelisms %j',
    async (restores) => {
      const undisturbed = await outcome([]);
      expect(undisturbed).toMatchObject({ dropped: [{ id: lateId }] });
      expect(await outcome(restores)).toEqual(undisturbed);
    },
  );
});

describe('the watermark of an operator', () => {
  it('is in the checkpoint, and reaches those after it again even when no newer one comes', async () => {
    const store = new MemoryStateStore();
    const [before, after]: [Count[], Count[]] = [[], []];
    const run = await TestRun.start(countsOf(before, [], []), { store });
    await run.step(1, 50);
    const restore = await run.checkpoint();
    await run.close();
    const stored = (uid: string): unknown => restore.operators.find((part) => part.operator === uid)?.watermarkMs;
    expect([stored('counts'), stored('larger')]).toEqual([48_999, 48_999]);
    const again = await TestRun.start(countsOf(after, [], []), { store, restore, generation: 2 });
    const passed: number[] = [];
    const larger = again.operators('larger')[0];
    if (larger === undefined) throw new Error('no operator');
    const watermark = larger.watermark.bind(larger);
    larger.watermark = (watermarkMs) => {
      passed.push(watermarkMs);
      return watermark(watermarkMs);
    };
    await again.operators('counts')[0]?.watermark(1000);
    await again.step(1, 0);
    expect(passed[0]).toBe(48_999);
    await again.close();
  });

  it('is restored from the parts that hold the keys, the smallest, with the end as the largest of all', () => {
    const part = (operator: string, start: number, end: number, watermarkMs: number): OperatorSnapshot => ({
      operator,
      subtask: 0,
      table: { keyGroups: { start, end } } as NonNullable<OperatorSnapshot['table']>,
      ...storedWatermark(watermarkMs),
    });
    const end = Number.POSITIVE_INFINITY;
    const parts = [part('a', 0, 3, 50), part('a', 4, 7, 70), part('a', 8, 11, end), part('b', 0, 11, 1)];
    const restored = (start: number, last: number): number =>
      restoredWatermarkMs(parts, { uid: 'a', keyGroups: { start, end: last } });
    expect([restored(0, 11), restored(4, 8), restored(8, 9), restored(12, 15)]).toEqual([50, 70, end, -end]);
    expect(JSON.stringify([storedWatermark(end), storedWatermark(-end)])).toBe('[{"watermarkMs":"end"},{}]');
  });
});
