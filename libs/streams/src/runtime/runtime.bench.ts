/**
 * What one hop between two tasks costs: `node libs/streams/src/runtime/runtime.bench.ts`. A source that emits records of
 * one shape, then operators that pass them on, each in a task of its own. CPU time of the whole process, so that a busy
 * machine hardly changes it. A remote hop is between two slots on one thread over the in-memory network, so it counts
 * both sides (encode, frame, decode) and not the message port.
 */

import type { Codec } from '@millrace/state';
import { float64, int64, keyCodec, MemoryStateStore, string, struct } from '@millrace/state';
import type { Partitioning } from '../graph/job-graph.ts';
import { type EdgeSpec, testGraph } from '../testing/fixture-graph.ts';
import { PassOperator } from '../testing/fixture-operators.ts';
import { LocalCluster } from '../testing/local-cluster.ts';
import type { Operator, OperatorContext, Poll } from './operator.ts';

const codec = struct({ id: int64, name: string, price: float64 }) as Codec<never>;

class BenchSource extends PassOperator {
  #left: number;
  #output!: OperatorContext['output'];

  constructor(records: number) {
    super();
    this.#left = records;
  }
  override open(context: OperatorContext): void {
    this.#output = context.output;
  }
  poll(recordsMax: number): Poll {
    const output = this.#output;
    const many = Math.min(recordsMax, this.#left);
    for (let i = 0; i < many; i++) output.emit({ id: this.#left - i, name: 'a name of some length', price: 1.5 }, 1000);
    this.#left -= many;
    return this.#left === 0 ? 'end' : 'more';
  }
}

class Nothing extends PassOperator {
  override record(): void {
    // The end of the way.
  }
}

async function measure(name: string, partitioning: Partitioning, parallelism: number, hops: number): Promise<void> {
  const records = 1_000_000;
  const operators: Record<string, () => Operator> = { source: () => new BenchSource(records / parallelism) };
  const edges: EdgeSpec[] = [];
  let from = 'source';
  for (let i = 0; i < hops; i++) {
    const uid = `hop${i}`;
    operators[uid] = () => (i + 1 === hops ? new Nothing() : new PassOperator());
    edges.push({ from, to: uid, partitioning, codec });
    from = uid;
  }
  const graph = testGraph(operators, edges);
  for (let round = 0; round < 3; round++) {
    const cluster = await LocalCluster.start({ graph: () => graph, store: new MemoryStateStore(), parallelism });
    const started = process.cpuUsage();
    await cluster.finish();
    const used = process.cpuUsage(started);
    const us = (used.user + used.system) / records;
    if (round === 2) console.log(`${name}: ${us.toFixed(3)} us per record over ${hops} hops`);
  }
}

const hash: Partitioning = {
  kind: 'hash',
  key: ((value: { name: string }) => value.name) as (value: never) => unknown,
  keyCodec: keyCodec as unknown as Codec<never>,
};
await measure('own slot, 1 hop', { kind: 'rebalance' }, 1, 1);
await measure('own slot, 3 hops', { kind: 'rebalance' }, 1, 3);
await measure('two slots, rebalance (half of the records cross), 1 hop', { kind: 'rebalance' }, 2, 1);
await measure('two slots, rebalance, 3 hops', { kind: 'rebalance' }, 2, 3);
await measure('two slots, hash by a string, 1 hop', hash, 2, 1);
