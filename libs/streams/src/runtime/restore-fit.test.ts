import { int64, MemoryStateStore } from '@millrace/state';
import { describe, expect, it } from 'vitest';
import { job } from '../api/job.ts';
import { buildGraph } from '../graph/build-graph.ts';
import type { JobGraph } from '../graph/job-graph.ts';
import { collect } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import { LocalCluster } from '../testing/local-cluster.ts';
import { TestRun } from '../testing/test-run.ts';

interface Uids {
  readonly source?: string;
  readonly step?: string;
  readonly count?: string;
  readonly sink?: string;
}

function countOf(out: number[], { source = 'orders', step = 'step', count = 'count', sink = 'sink' }: Uids): JobGraph {
  return buildGraph(
    job('counts', (flow) => {
      flow
        .from(generator({ record: (i) => i, records: 100, splits: 1 }), { uid: source })
        .map((i) => i, { uid: step })
        .keyBy(() => 'all')
        .aggregate({
          uid: count,
          accumulator: int64,
          output: int64,
          create: () => 0,
          add: (sum: number) => sum + 1,
          result: (sum) => sum,
        })
        .to(collect(out), { uid: sink });
    }),
  );
}

/** The last count after a restart with other uids; 100 when nothing is lost or read twice. */
async function afterRestart(uids: Uids, allowDroppedState = false): Promise<number | undefined> {
  const store = new MemoryStateStore();
  const out: number[] = [];
  const run = await TestRun.start(countOf(out, {}), { store });
  await run.step(1, 60);
  const restore = await run.checkpoint();
  await run.close();
  const again = await TestRun.start(countOf(out, uids), { store, restore, generation: 2, allowDroppedState });
  await again.finish();
  return out.at(-1);
}

describe('a restart of a job whose operators have other uids', () => {
  it('goes on where it was when only those without state have', async () => {
    expect(await afterRestart({ step: 'other', sink: 'another' })).toBe(100);
  });

  it.each<[keyof Uids, string, string]>([
    ['source', 'orders', 'orders-v2'],
    ['count', 'count', 'count-v2'],
  ])('reads nothing twice and forgets nothing: another uid of the %s is refused', async (which, old, uid) => {
    await expect(afterRestart({ [which]: uid })).rejects.toMatchObject({
      code: 'state-incompatible',
      message: expect.stringMatching(`'${old}'.*'${uid}'.*uid`) as string,
      details: { dropped: old, fresh: uid },
    });
  });

  it('drops the state that it says it may drop', async () => {
    expect(await afterRestart({ count: 'count-v2' }, true)).toBe(40);
    expect(await afterRestart({ source: 'orders-v2' }, true)).toBe(160);
  });

  it('is refused by every slot before it opens an operator', async () => {
    const store = new MemoryStateStore();
    const first = await LocalCluster.start({ graph: () => countOf([], {}), store, parallelism: 2 });
    const from = await first.checkpoint();
    await first.kill();
    let created = 0;
    const graph = (): JobGraph => {
      const built = countOf([], { count: 'count-v2' });
      const operators = built.operators.map((node) => ({
        ...node,
        create: () => {
          const operator = node.create();
          operator.open = async () => void created++;
          return operator;
        },
      }));
      return { ...built, operators };
    };
    await expect(LocalCluster.start({ graph, store, from, generation: 2 })).rejects.toMatchObject({
      code: 'state-incompatible',
    });
    expect(created).toBe(0);
  });
});
