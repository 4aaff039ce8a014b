/** Faults of asynchronous execution that users of other stream processors have met, as a job's author would see them. */
import { SeededRandom, systemClock } from '@millrace/kernel';
import { int64, keyCodec, MemoryStateStore, msgpack, string, value } from '@millrace/state';
import { noTelemetry } from '@millrace/telemetry';
import { describe, expect, it } from 'vitest';
import type { Execution } from '../api/execution.ts';
import { job } from '../api/job.ts';
import type { KeyedLogic } from '../api/process.ts';
import { monotonous } from '../api/watermarks.ts';
import { tumbling } from '../api/windows.ts';
import { buildGraph } from '../graph/build-graph.ts';
import { collect } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import { SlowStore } from '../testing/slow-store.ts';
import { TestRun } from '../testing/test-run.ts';
import { KeyedOperator } from './keyed-operator.ts';

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const executions: readonly Execution[] = ['synchronous', { watermarks: 'serial' }, { watermarks: 'parallel' }];

/** One operator, driven by hand; what leaves it, in order. */
async function opened(
  logic: Partial<KeyedLogic>,
  execution: Execution,
): Promise<{ operator: KeyedOperator; out: string[] }> {
  const out: string[] = [];
  const whole: KeyedLogic = { shape: {}, onRecord: () => undefined, ...logic };
  const operator = new KeyedOperator(whole, [(record: never) => String(record)[0]], keyCodec as never, execution);
  const keyGroups = { start: 0, end: 127 };
  await operator.open({
    slot: {
      job: 'faults',
      generation: 1,
      subtask: 0,
      parallelism: 1,
      maxParallelism: 128,
      keyGroups,
      settings: {
        inFlightLimit: 10,
        workingSetBytes: 1 << 20,
        frameBytes: 1,
        frameDelayMs: 1,
        channelWindowBytes: 1,
      },
      store: new MemoryStateStore(),
      transport: { send: () => undefined, grant: () => undefined, listen: () => undefined },
      clock: systemClock,
      random: new SeededRandom(1),
      telemetry: noTelemetry,
    },
    uid: 'op',
    subtask: 0,
    keyGroups,
    output: {
      emit: (record) => void out.push(String(record)),
      watermark: (watermarkMs) => void out.push(`watermark ${watermarkMs}`),
      status: (idle) => void out.push(idle ? 'idle' : 'active'),
    },
    restoredTables: [],
    restoredList: undefined,
    fail: (error) => void out.push(String(error)),
  });
  return { operator, out };
}

describe.each(executions)('with execution %j', (execution) => {
  it('a watermark fires once when the input goes idle (FLINK-36859)', async () => {
    const { operator, out } = await opened({ onRecord: settled }, execution);
    await operator.record('a', 1, 0);
    await operator.watermark(10);
    await operator.status(true);
    await operator.watermark(10);
    await operator.status(false);
    await operator.drain();
    expect(out).toEqual(['watermark 10', 'idle', 'active']);
  });

  it('neither watermark nor idle status leaves before the timers and all that they started (FLINK-36875, FLINK-36892)', async () => {
    const { operator, out } = await opened(
      {
        onRecord: (_record, _input, ctx) => ctx.timers.at(5),
        async onTimer(_timeMs, ctx) {
          await settled();
          ctx.emit(`timer of ${String(ctx.key)}`);
          ctx.spawn(async (own) => {
            await settled();
            own.emit(`callback of ${String(own.key)}`);
          });
        },
      },
      execution,
    );
    for (const record of ['a', 'b']) await operator.record(record, 1, 0);
    const watermark = operator.watermark(10);
    await watermark;
    await operator.status(true);
    await operator.drain();
    expect(out.slice(0, 4).toSorted()).toEqual(['callback of a', 'callback of b', 'timer of a', 'timer of b']);
    expect(out.slice(4)).toEqual(['watermark 10', 'idle']);
  });

  it('work spawned at the in-flight limit does not wait for its parent (FLINK-37089)', async () => {
    const { operator, out } = await opened(
      {
        async onRecord(record, _input, ctx) {
          await settled();
          ctx.spawn(async (child) => {
            await settled();
            child.spawn((grandchild) => grandchild.emit(`grandchild of ${String(record)}`));
          });
        },
      },
      execution,
    );
    const records = Array.from({ length: 30 }, (_, i) => `${i % 10}/${i}`);
    for (const record of records) await operator.record(record, 1, 0);
    await operator.drain();
    expect(out.toSorted()).toEqual(records.map((record) => `grandchild of ${record}`).toSorted());
  });

  it('the end of the input waits for timers, and no trailing window is lost (FLINK-39481)', async () => {
    for (let seed = 0; seed < 5; seed++) {
      const out: number[] = [];
      const graph = buildGraph(
        job('trailing', (flow) => {
          flow
            .from(generator({ record: (i) => i, records: 40, splits: 1 }), {
              timestamp: (n) => n * 10,
              watermarks: monotonous({ interval: 0 }),
            })
            .keyBy((n) => n % 4)
            .window(tumbling(50), { uid: 'sums', execution })
            .reduce((a, b) => a + b, int64)
            .to(collect(out));
        }),
      );
      const store = new SlowStore(new MemoryStateStore(), systemClock, new SeededRandom(seed), 1);
      await (await TestRun.start(graph, { store, workingSetBytes: 1 })).finish();
      // Five records and four keys in each window.
      expect(out).toHaveLength(32);
      expect(out.reduce((a, b) => a + b)).toBe((40 * 39) / 2);
    }
  });

  it('a snapshot holds no half of a record (FLINK-35027)', async () => {
    const shape = { left: value(int64), right: value(int64) };
    const out: [left: number, right: number][] = [];
    const graph = buildGraph(
      job('halves', (flow) => {
        flow
          .from(generator({ record: (i) => i, records: 60, splits: 1 }))
          .keyBy((n) => n % 3)
          .process({
            uid: 'halves',
            execution,
            state: shape,
            output: msgpack<[number, number]>(),
            async onRecord(_n, ctx) {
              const left = ((await ctx.state.left.get()) ?? 0) + 1;
              ctx.state.left.set(left);
              await settled();
              const right = ((await ctx.state.right.get()) ?? 0) + 1;
              ctx.state.right.set(right);
              ctx.emit([left, right]);
            },
          })
          .to(collect(out));
      }),
    );
    const store = new MemoryStateStore();
    const first = await TestRun.start(graph, { store });
    await first.step(1, 25);
    const restore = await first.checkpoint();
    const kept = out.length;
    await first.step(1, 7);
    await first.close();
    out.length = kept;
    await (await TestRun.start(graph, { store, restore, generation: 2, parallelism: 2 })).finish();
    expect(out).toHaveLength(60);
    expect(out.every(([left, right]) => left === right)).toBe(true);
    expect(out.filter(([left]) => left === 20)).toHaveLength(3);
  });
});

it('one handler may use state at hand and state far away alike: there is one API (FLINK-36376)', async () => {
  for (const workingSetBytes of [1, 1 << 20]) {
    const out: string[] = [];
    const graph = buildGraph(
      job('mixed', (flow) => {
        flow
          .from(generator({ record: (i) => i, records: 20, splits: 1 }))
          .keyBy((n) => n % 2)
          .process({
            uid: 'mixed',
            state: { count: value(int64) },
            output: string,
            // Even keys return no promise when their state is at hand, odd ones always do.
            onRecord(n, ctx): void | Promise<void> {
              const add = (old: number | undefined): void => {
                ctx.state.count.set((old ?? 0) + 1);
                ctx.emit(`${ctx.key}: ${(old ?? 0) + 1}`);
              };
              const old = ctx.state.count.get();
              if (old instanceof Promise) return old.then(add);
              if (n % 2 === 1) return settled().then(() => add(old));
              return add(old);
            },
          })
          .to(collect(out));
      }),
    );
    await (await TestRun.start(graph, { workingSetBytes })).finish();
    for (const key of [0, 1]) {
      const mine = out.filter((line) => line.startsWith(`${key}:`));
      expect(mine).toEqual(Array.from({ length: 10 }, (_, i) => `${key}: ${i + 1}`));
    }
  }
});
