import { jsonValue, type KafkaSourceOptions, kafkaSink, kafkaSource } from '@millrace/kafka';
import { buildGraph, collect, generator, type JobGraph, job } from '@millrace/streams';
import { type TestCheckpoint, TestRun } from '@millrace/streams/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { KafkaBroker } from './support/kafka/broker.ts';
import { Topics } from './support/kafka/topics.ts';
import { eventually } from './support/test-stack.ts';

let broker: KafkaBroker;
let topics: Topics;
beforeAll(async () => {
  broker = await KafkaBroker.start();
  topics = new Topics(broker.address);
}, 600_000);
afterAll(async () => {
  await topics?.[Symbol.asyncDispose]();
  await broker?.[Symbol.asyncDispose]();
});

const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);
const sorted = (list: readonly number[]): number[] => list.toSorted((a, b) => a - b);

async function write(topic: string, from: number, to: number): Promise<void> {
  await topics.produce(
    topic,
    numbers(from, to).map((n) => ({ key: `k${n}`, value: String(n) })),
  );
}

function graphOf(topic: string, all: number[], options: Partial<KafkaSourceOptions<number>> = {}): JobGraph {
  const source = kafkaSource<number>({ brokers: [broker.address], topics: [topic], decode: jsonValue, ...options });
  return buildGraph(job('read', (flow) => flow.from(source, { uid: 'source' }).to(collect(all))));
}

async function readAll(topic: string, options: Partial<KafkaSourceOptions<number>> = {}): Promise<number[]> {
  const all: number[] = [];
  await (await TestRun.start(graphOf(topic, all, { stop: 'latest', ...options }), { parallelism: 2 })).finish();
  return sorted(all);
}

test('a source begins where it is told: earliest, latest, at a time, where its group stands', async () => {
  await topics.create('starts', 3);
  await write('starts', 0, 100);
  await new Promise((resolve) => setTimeout(resolve, 20));
  const timestampMs = Date.now();
  await write('starts', 100, 150);
  expect(await readAll('starts', { group: 'starts-group' })).toEqual(numbers(0, 150));
  await eventually('the offsets in the group', 10_000, async () => {
    const { end, group } = await topics.offsets('starts', 'starts-group');
    return end.join() === group.join() ? true : undefined;
  });
  expect(await readAll('starts', { start: { timestampMs } })).toEqual(numbers(100, 150));
  expect(await readAll('starts', { start: 'latest' })).toEqual([]);
  await write('starts', 150, 170);
  expect(await readAll('starts', { start: 'committed', group: 'starts-group' })).toEqual(numbers(150, 170));
  expect(await readAll('starts', { start: 'committed', group: 'nobody' })).toEqual(numbers(0, 170));
});

test('offsets are restored at another parallelism: each record comes once', async () => {
  await topics.create('restores', 5);
  await write('restores', 0, 3000);
  const all: number[] = [];
  const graph = graphOf('restores', all, { stop: 'latest' });
  let restore: TestCheckpoint | undefined;
  for (const parallelism of [2, 3, 1, 7]) {
    const run = await TestRun.start(graph, { parallelism, ...(restore === undefined ? {} : { restore }) });
    await run.step(4, 100);
    restore = await run.checkpoint();
    const kept = all.length;
    await run.step(2, 50);
    all.length = kept;
    await run.close();
  }
  const last = await TestRun.start(graph, { parallelism: 2, ...(restore === undefined ? {} : { restore }) });
  await last.finish();
  expect(sorted(all)).toEqual(numbers(0, 3000));
});

test('a topic that does not exist is refused by name', async () => {
  await expect(TestRun.start(graphOf('nowhere', []))).rejects.toMatchObject({
    code: 'kafka-refused',
    message: expect.stringMatching(/UNKNOWN_TOPIC|no such topic/) as string,
  });
});

test('at least once: records are there before any checkpoint', async () => {
  await topics.create('soon', 2);
  const sink = kafkaSink<number>({
    brokers: [broker.address],
    topic: 'soon',
    delivery: 'at-least-once',
    encode: (n) => ({ key: String(n), value: String(n) }),
  });
  const graph = buildGraph(job('soon', (flow) => flow.from(generator({ record: (i) => i, records: 500 })).to(sink)));
  const run = await TestRun.start(graph);
  await run.toEnd();
  const all = async (): Promise<number | undefined> => {
    const { length } = await readAll('soon');
    return length < 500 ? undefined : length;
  };
  expect(await eventually('all records', 10_000, all)).toBe(500);
  await run.close();
});
