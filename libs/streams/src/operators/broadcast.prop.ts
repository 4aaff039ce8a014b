/* Broadcast state and asynchronous maps in real slots: kills, aligned and unaligned checkpoints, 1 → 3 → 2 subtasks. */
import { ByteReader, SeededRandom } from '@millrace/kernel';
import { int64, MemoryStateStore, map, msgpack, value } from '@millrace/state';
import { describe, expect, it } from 'vitest';
import { job } from '../api/job.ts';
import { buildGraph } from '../graph/build-graph.ts';
import type { JobGraph } from '../graph/job-graph.ts';
import { collect } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import { type ClusterCheckpoint, LocalCluster } from '../testing/local-cluster.ts';
import { forSeeds, randomSeeds } from '../testing/random-run.ts';

const seeds = randomSeeds(30);
const rules = 400;
const records = 600;
const keys = 5;

interface Count {
  readonly key: number;
  readonly count: number;
  readonly sum: number;
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Numbers through an asynchronous map, counted by key beside rules that every subtask gets. */
function graphOf(out: Count[], random: SeededRandom): JobGraph {
  return buildGraph(
    job('test', (flow) => {
      // Slowed down, so that checkpoints come while rules do.
      const rulesStream = flow
        .from(generator({ record: (i) => i, records: rules, splits: 5 }), { uid: 'rules' })
        .mapAsync(
          async (rule) => {
            await turns(1 + random.below(3));
            return rule;
          },
          { uid: 'slow-rules', concurrency: 4 },
        );
      flow
        .from(generator({ record: (i) => i, records, splits: 7 }), { uid: 'numbers' })
        .mapAsync(
          async (n) => {
            await turns(random.below(3));
            return n;
          },
          { uid: 'ask', order: random.below(2) === 0 ? 'ordered' : 'unordered', concurrency: 10 },
        )
        .keyBy((n) => n % keys)
        .connectBroadcast(rulesStream, {
          uid: 'counts',
          broadcast: { rules: map(int64, int64) },
          state: { total: value(msgpack<Count>()) },
          output: msgpack<Count>(),
          // Each rule adds to what is there: one that is lost or applied twice shows.
          onBroadcast: (rule, maps) => maps.rules.set(rule % 50, (maps.rules.get(rule % 50) ?? 0) + rule),
          async onRecord(n, _maps, ctx) {
            const old = (await ctx.state.total.get()) ?? { key: ctx.key, count: 0, sum: 0 };
            const total = { key: ctx.key, count: old.count + 1, sum: old.sum + n };
            ctx.state.total.set(total);
            await turns(random.below(2));
            ctx.emit(total);
          },
        })
        .to(collect(out));
    }),
  );
}

describe(`a job that is killed and restored (${seeds.length} cases)`, () => {
  it('comes to the same broadcast maps in every subtask, and counts each record of an asynchronous map once', () =>
    forSeeds(seeds, async (seed) => {
      const random = new SeededRandom(seed);
      const store = new MemoryStateStore();
      const out: Count[] = [];
      let from: ClusterCheckpoint | undefined;
      for (const [i, parallelism] of [1, 3, 2].entries()) {
        const cluster = await LocalCluster.start({
          graph: () => graphOf(out, random),
          store,
          parallelism,
          maxParallelism: 16,
          generation: i + 1,
          from,
          random,
          slowNetwork: random.below(2) === 0,
          settings: { frameBytes: 1 + random.below(100), channelWindowBytes: 64 + random.below(500), frameDelayMs: 1 },
        });
        if (i < 2) {
          await turns(random.below(60));
          from = await cluster.checkpoint([undefined, 0, 1][random.below(3)]);
          await turns(random.below(20));
          await cluster.kill();
          await cluster.done.catch(() => undefined);
        } else {
          from = await cluster.finish();
        }
      }
      const parts = from?.operators.filter((part) => part.operator === 'counts') ?? [];
      expect(parts).toHaveLength(2);
      const expected = new Map<number, number>();
      for (let rule = 0; rule < rules; rule++) expected.set(rule % 50, (expected.get(rule % 50) ?? 0) + rule);
      for (const { list = [] } of parts) expect(mapOf(list[0])).toEqual(expected);
      for (let key = 0; key < keys; key++) {
        const own = Array.from({ length: records }, (_, n) => n).filter((n) => n % keys === key);
        const last = out.filter((one) => one.key === key).reduce((a, b) => (b.count >= a.count ? b : a));
        expect(last).toEqual({ key, count: own.length, sum: own.reduce((sum, n) => sum + n, 0) });
      }
    }));
});

function mapOf(stored: unknown): Map<number, number> {
  const { entries } = stored as { entries: [string, string][] };
  const decode = (base64: string): number =>
    int64.decode(new ByteReader(new Uint8Array(Buffer.from(base64, 'base64'))));
  return new Map(entries.map(([key, sum]) => [decode(key), decode(sum)]));
}
