import { SeededRandom } from '@millrace/kernel';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { differences } from './support/json-lines.ts';
import { KafkaBroker } from './support/kafka/broker.ts';
import { Topics } from './support/kafka/topics.ts';
import { killRunners } from './support/kill-runners.ts';
import { eventually, TestStack } from './support/test-stack.ts';

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

const jobs = new URL('../../examples/kafka/clicks/clicks.ts', import.meta.url).pathname;
const pages = 211;
const clicks = 24_000;

/** Writes the clicks, and returns what has to come out: every count of every page. */
async function fill(input: string): Promise<string[]> {
  const expected: string[] = [];
  const counts = new Map<string, number>();
  const messages = Array.from({ length: clicks }, (_, i) => {
    const page = `/p${(i * i + 7 * i) % pages}`;
    const count = (counts.get(page) ?? 0) + 1;
    counts.set(page, count);
    expected.push(JSON.stringify({ page, clicks: count }));
    return { key: `visitor-${i % 1000}`, value: JSON.stringify({ page }) };
  });
  await topics.create(input, 4);
  await topics.produce(input, messages);
  return expected.sort();
}

test('Kafka to Kafka: readers of committed records see each count once, whatever runner is killed', async () => {
  const seed = Number(process.env.MILLRACE_SEED ?? Math.floor(Math.random() * 2 ** 31));
  console.log(`MILLRACE_SEED=${seed}`);
  const expected = await fill('clicks');
  await topics.create('counts', 3);
  await using run = await TestStack.start({ runners: 2, slots: 1, env: { MILLRACE_JOBS: jobs } });
  const job = await run.client.startJob({
    job: 'clicks',
    parallelism: 2,
    checkpointIntervalMs: 500,
    options: { brokers: [broker.address], input: 'clicks', output: 'counts', bounded: true, recordsPerSecond: 2000 },
  });
  const kills = await killRunners({ run, job, kills: 2, runners: 2, random: new SeededRandom(seed), delayMaxMs: 2000 });
  const end = await job.result();
  expect(end).toMatchObject({ state: 'finished' });
  expect(end.generation).toBeGreaterThan(kills);
  expect(kills).toBeGreaterThan(0);

  const counts = await topics.committed('counts');
  expect(differences(counts.sort(), expected)).toEqual([]);
  expect(counts).toHaveLength(clicks);
  expect(await topics.openTransactions()).toEqual([]);
  const offsets = await eventually('the last offsets in the group', 10_000, async () => {
    const found = await topics.offsets('clicks', 'clicks-job');
    return found.group.join() === found.end.join() ? found : undefined;
  });
  expect(offsets.end.reduce((sum, offset) => sum + offset, 0n)).toBe(BigInt(clicks));
});

test('Kafka to Kafka: a broker that is killed and comes back changes nothing in the result', async () => {
  const expected = await fill('clicks-2');
  await topics.create('counts-2', 3);
  await using run = await TestStack.start({ runners: 2, slots: 1, env: { MILLRACE_JOBS: jobs } });
  const job = await run.client.startJob({
    job: 'clicks',
    id: 'clicks-2',
    parallelism: 2,
    checkpointIntervalMs: 500,
    options: {
      brokers: [broker.address],
      input: 'clicks-2',
      output: 'counts-2',
      bounded: true,
      recordsPerSecond: 2000,
    },
  });
  await eventually('two checkpoints', 120_000, async () => ((await job.rounds()).length >= 2 ? true : undefined));
  await broker.down('SIGKILL');
  await broker.up();
  expect(await job.result()).toMatchObject({ state: 'finished' });
  const counts = await topics.committed('counts-2');
  expect(differences(counts.sort(), expected)).toEqual([]);
  expect(counts).toHaveLength(clicks);
});
