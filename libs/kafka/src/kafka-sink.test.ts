import { buildGraph, generator, type JobGraph, job, type Sink } from '@millrace/streams';
import { type TestCheckpoint, TestRun } from '@millrace/streams/testing';
import { describe, expect, it } from 'vitest';
import { KafkaSinkOperator } from './kafka-sink-operator.ts';
import { MemoryBroker } from './testing/memory-transactions.ts';
import type { ProducerIdentity } from './transactions.ts';

const records = 600;

function sinkTo(broker: MemoryBroker, lost: 'fail' | 'ignore' = 'fail'): Sink<number> {
  return {
    kind: 'kafka',
    stateful: true,
    create: () =>
      new KafkaSinkOperator<number>({
        topic: 'out',
        encode: (n) => ({ key: `k${n % 7}`, value: String(n) }),
        delivery: 'exactly-once',
        lost,
        namePrefix: 'millrace/',
        batchBytes: 2000,
        lingerMs: 1,
        connect: () => broker.client(),
      }),
  };
}

function graphOf(broker: MemoryBroker, lost?: 'fail' | 'ignore'): JobGraph {
  return buildGraph(
    job('sink', (flow) =>
      flow.from(generator({ record: (i) => i, records, splits: 4 }), { uid: 'source' }).to(sinkTo(broker, lost), {
        uid: 'out',
      }),
    ),
  );
}

const committed = (broker: MemoryBroker): number[] => broker.committed.map(Number).sort((a, b) => a - b);
const ascending = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe('the Kafka sink, exactly once', () => {
  it('shows nothing before the checkpoint is registered, and everything after', async () => {
    const broker = new MemoryBroker();
    const run = await TestRun.start(graphOf(broker), { parallelism: 2 });
    await run.step(3, 50);
    const checkpoint = await run.checkpoint();
    expect(committed(broker)).toEqual([]);
    await run.complete(checkpoint);
    await run.complete(checkpoint);
    expect(committed(broker)).toHaveLength(300);
    await run.finish();
    expect(committed(broker)).toEqual(ascending(records));
    expect(broker.open()).toEqual([]);
  });

  it('begins no transaction without records', async () => {
    const broker = new MemoryBroker();
    const run = await TestRun.start(graphOf(broker));
    await run.complete(await run.checkpoint());
    expect([...broker.names.keys()]).toEqual([]);
    await run.close();
  });

  it('commits what an aborted round stored with the next registered one', async () => {
    const broker = new MemoryBroker();
    const run = await TestRun.start(graphOf(broker));
    await run.step(2, 100);
    await run.checkpoint();
    await run.step(1, 100);
    await run.complete(await run.checkpoint());
    expect(committed(broker)).toEqual(ascending(300));
    await run.close();
  });

  it('is exactly once whichever step a crash comes before, at any parallelism of the restart', async () => {
    const calm = new MemoryBroker();
    await crashing(calm, Number.POSITIVE_INFINITY);
    expect(calm.steps.length).toBeGreaterThan(40);
    expect(committed(calm)).toEqual(ascending(records));
    for (let crashAt = 0; crashAt < calm.steps.length; crashAt++) {
      const broker = new MemoryBroker();
      await crashing(broker, crashAt);
      expect(committed(broker), `crash before step ${crashAt}: ${calm.steps[crashAt]}`).toEqual(ascending(records));
      expect(broker.open(), `left open by a crash before ${calm.steps[crashAt]}`).toEqual([]);
    }
  });

  it('is not harmed by an attempt that goes on after the restart', async () => {
    const broker = new MemoryBroker();
    const graph = graphOf(broker);
    const zombie = await TestRun.start(graph, { parallelism: 2, generation: 1 });
    await zombie.step(1, 100);
    const registered = await zombie.checkpoint();
    const run = await TestRun.start(graph, { parallelism: 1, generation: 2, restore: registered });
    await zombie.step(1, 40);
    await zombie.checkpoint();
    await zombie.complete(registered);
    await run.finish();
    expect(committed(broker)).toEqual(ascending(records));
  });

  it('uses few names, and none again while a restore could ask for its last transaction', async () => {
    const broker = new MemoryBroker();
    const run = await TestRun.start(graphOf(broker));
    let before: TestCheckpoint | undefined;
    for (let round = 0; round < 12; round++) {
      await run.step(1, 10);
      const checkpoint = await run.checkpoint();
      // What the last registered checkpoint names can still be committed once more.
      const names = before?.operators.flatMap((part) => (part.operator === 'out' ? (part.list ?? []) : [])) ?? [];
      for (const name of names) expect(await broker.client().commit(name as ProducerIdentity)).toBe('done');
      await run.complete(checkpoint);
      before = checkpoint;
    }
    expect(broker.names.size).toBeLessThanOrEqual(3);
    expect(committed(broker)).toEqual(ascending(120));
    await run.close();
  });

  it('says loudly that the brokers have given up a transaction of a registered checkpoint', async () => {
    const broker = new MemoryBroker();
    const run = await TestRun.start(graphOf(broker));
    await run.step(1, 100);
    const restore = await run.checkpoint();
    broker.expire();
    await expect(TestRun.start(graphOf(broker), { generation: 2, restore })).rejects.toMatchObject({
      code: 'sink-output-missing',
    });
    const going = await TestRun.start(graphOf(broker, 'ignore'), { generation: 2, restore });
    await going.finish();
    expect(committed(broker)).toEqual(ascending(records).slice(100));
  });

  it('stops after a limit of rounds in a row that nobody registers', async () => {
    const broker = new MemoryBroker();
    const run = await TestRun.start(graphOf(broker));
    const rounds = async (): Promise<void> => {
      for (let round = 0; round < 40; round++) {
        await run.step(1, 1);
        await run.checkpoint();
      }
    };
    await expect(rounds()).rejects.toMatchObject({ code: 'kafka-unavailable' });
    expect(broker.open().length).toBe(32);
  });
});

class Crash extends Error {}

/** The whole life of a job with a round after each poll, every other one never registered, and one crash before a step. */
async function crashing(broker: MemoryBroker, crashAt: number): Promise<void> {
  let registered: TestCheckpoint | undefined;
  const attempt = async (generation: number, parallelism: number): Promise<void> => {
    const run = await TestRun.start(graphOf(broker), {
      generation,
      parallelism,
      ...(registered === undefined ? {} : { restore: registered }),
    });
    let round = 0;
    for (let ended = false; !ended; ) {
      ended = await run.step(1, 75);
      const checkpoint = await run.checkpoint();
      if (round++ % 2 === 0 && !ended) continue;
      registered = checkpoint;
      await run.complete(checkpoint);
    }
    await run.close();
  };
  let steps = 0;
  broker.before = () => {
    if (steps++ === crashAt) throw new Crash();
  };
  try {
    await attempt(1, 2);
  } catch (error) {
    if (!(error instanceof Crash || (error as Error).cause instanceof Crash)) throw error;
    await attempt(2, crashAt % 2 === 0 ? 3 : 1);
  }
}
