/* What a handler may do with its state, and when (promise A6 of the execution controller's SPEC). */
import { SeededRandom, systemClock } from '@millrace/kernel';
import { int64, MemoryStateStore, type StateStore, type StateTable, value } from '@millrace/state';
import { describe, expect, it } from 'vitest';
import type { Execution } from '../api/execution.ts';
import { job } from '../api/job.ts';
import type { ProcessSpec } from '../api/process.ts';
import { buildGraph } from '../graph/build-graph.ts';
import { collect } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import { SlowStore } from '../testing/slow-store.ts';
import { TestRun } from '../testing/test-run.ts';

const shape = { n: value(int64) };
type Handler = ProcessSpec<number, number, typeof shape, number>['onRecord'];

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const farAway = (): StateStore => new SlowStore(new MemoryStateStore(), systemClock, new SeededRandom(5), 1);

async function run(
  onRecord: Handler,
  store = farAway(),
  records = 1,
  keys = 1,
  execution?: Execution,
): Promise<number[]> {
  const out: number[] = [];
  const graph = buildGraph(
    job('calls', (flow) => {
      flow
        .from(generator({ record: (i) => i, records }))
        .keyBy((i) => i % keys)
        .process({ uid: 'count', state: shape, output: int64, execution, onRecord })
        .to(collect(out));
    }),
  );
  await (await TestRun.start(graph, { store })).finish();
  return out;
}

/** Whose first read fails. */
function failsOnce(store: StateStore): StateStore {
  let failed = false;
  return {
    name: store.name,
    async openTable(...args): Promise<StateTable> {
      const table = await store.openTable(...args);
      return {
        spec: table.spec,
        peek: () => 'unknown',
        multiGet: (keys, parent) => {
          if (failed) return table.multiGet(keys, parent);
          failed = true;
          return Promise.reject(new Error('the store was away'));
        },
        write: (batch) => table.write(batch),
        scan: (range, parent) => table.scan(range, parent),
        snapshot: (checkpoint, parent) => table.snapshot(checkpoint, parent),
        stats: () => table.stats(),
        close: () => table.close(),
      };
    },
    close: () => store.close(),
  };
}

describe('a handler', () => {
  it('that awaits its accesses, one by one or together, finishes', async () => {
    const out = await run(
      async (_record, ctx) => {
        const [one, two] = await Promise.all([ctx.state.n.get(), ctx.state.n.get()]);
        expect(one).toBe(two);
        ctx.state.n.set((one ?? 0) + 1);
        ctx.emit((await ctx.state.n.get()) ?? 0);
      },
      farAway(),
      3,
    );
    expect(out).toEqual([1, 2, 3]);
  });

  it('that forgets an await fails, and is told what to do', async () => {
    const forgets: Handler = (_record, ctx) => {
      void ctx.state.n.get();
    };
    await expect(run(forgets)).rejects.toMatchObject({
      code: 'aec-unawaited-access',
      message: expect.stringMatching(/count.* 1 of its state accesses.*await/) as string,
    });
    const forgetsLater: Handler = async (_record, ctx) => {
      await settled();
      void ctx.state.n.get();
      void ctx.state.n.get();
    };
    await expect(run(forgetsLater)).rejects.toThrow(/ 2 of its state accesses/);
  });

  it.each<[string, (ctx: Parameters<Handler>[1]) => void]>([
    ['state', (ctx) => ctx.state.n.set(1)],
    ['emit', (ctx) => ctx.emit(1)],
    ['spawn', (ctx) => ctx.spawn(() => undefined)],
    ['timers.at', (ctx) => ctx.timers.at(1)],
  ])(
    'that uses its context (%s) from a callback after it has ended fails, even when the callback catches it',
    async (what, use) => {
      const waiting = Promise.withResolvers<void>();
      const handler: Handler = async (record, ctx) => {
        if (record > 0) return waiting.promise;
        void ctx.state.n;
        setImmediate(() => {
          try {
            use(ctx);
          } catch {
            waiting.resolve();
          }
        });
      };
      await expect(run(handler, farAway(), 2)).rejects.toMatchObject({
        code: 'aec-access-after-finish',
        message: expect.stringContaining(`${what} was used after the handler of count had ended`) as string,
      });
    },
  );

  it('that throws is reported with its own error', async () => {
    const throws: Handler = async (_record, ctx) => {
      void ctx.state.n.get();
      throw new Error('boom');
    };
    await expect(run(throws)).rejects.toThrow('boom');
  });

  it('that takes a failed read for "nothing stored" does not count anew over what is stored', async () => {
    const counts: number[] = [];
    const swallows: Handler = async (_record, ctx) => {
      const old = await Promise.resolve(ctx.state.n.get()).catch(() => undefined);
      ctx.state.n.set((old ?? 0) + 1);
      counts.push((old ?? 0) + 1);
    };
    await expect(run(swallows, failsOnce(new MemoryStateStore()), 3)).rejects.toThrow('the store was away');
    expect(counts).toEqual([1]);
  });

  it('that puts bad records aside does not lose the changes of other keys with them', async () => {
    const putsAside: Handler = (record, ctx) => {
      try {
        ctx.state.n.set(record === 0 ? ('no number' as unknown as number) : record);
      } catch {
        // The value may be written long after it was set, and by then it is not this record that fails.
      }
    };
    const records = 10_000;
    await expect(run(putsAside, new MemoryStateStore(), records, records)).rejects.toMatchObject({
      code: 'state-bad-value',
      message: expect.stringMatching(/state n, key .*no number/) as string,
    });
  });
});

it('a forgotten await loses no update silently: the run fails before the next record of the key', async () => {
  const increments: Handler = async (_record, ctx) => {
    await settled();
    // Its end, refused, comes after that of the run.
    void Promise.resolve(ctx.state.n.update((n) => (n ?? 0) + 1)).catch(() => undefined);
  };
  await expect(run(increments, farAway(), 10)).rejects.toMatchObject({ code: 'aec-unawaited-access' });
});

describe('spawned work', () => {
  it('runs after its handler and before the next record of the key, with a context of its own, at any limit', async () => {
    for (const execution of ['synchronous', { inFlightLimit: 3, watermarks: 'parallel' }, undefined] as const) {
      const log: string[] = [];
      const onRecord: Handler = async (record, ctx) => {
        const old = (await ctx.state.n.get()) ?? 0;
        ctx.state.n.set(old + 1);
        ctx.spawn(async (own) => {
          expect(own).not.toBe(ctx);
          await settled();
          own.spawn((last) => void log.push(`${last.key} grandchild of ${record}`));
          log.push(`${own.key} child of ${record}: ${await own.state.n.get()}`);
        });
        log.push(`${ctx.key} record ${record}`);
      };
      await run(onRecord, farAway(), 6, 2, execution);
      for (const key of [0, 1]) {
        const mine = [0, 1, 2].map((n) => 2 * n + key);
        expect(log.filter((line) => line.startsWith(`${key} `))).toEqual(
          mine.flatMap((record, n) => [
            `${key} record ${record}`,
            `${key} child of ${record}: ${n + 1}`,
            `${key} grandchild of ${record}`,
          ]),
        );
      }
    }
  });

  it('that fails ends the run', async () => {
    const onRecord: Handler = (_record, ctx) =>
      ctx.spawn(async () => {
        await settled();
        throw new Error('child failed');
      });
    await expect(run(onRecord)).rejects.toThrow('child failed');
  });
});
