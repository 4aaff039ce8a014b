/* What operators remember of a key, by the machine's clock, also across a restart with other slots. */
import { int64, map, msgpack, string } from '@millrace/state';
import { describe, expect, it } from 'vitest';
import { job } from '../api/job.ts';
import type { KeyedStream } from '../api/keyed-stream.ts';
import type { Stream } from '../api/stream.ts';
import { discard } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import { type TestJob, testJob } from '../testing/test-job.ts';

interface Score {
  readonly key: string;
  readonly points: number;
}

const nothing = generator<Score>({ record: () => ({ key: '', points: 0 }), records: 0 });

/** A job of one operator that forgets after a second. */
function forgetful<T>(operator: (keyed: KeyedStream<string, Score>) => Stream<T>): Promise<TestJob> {
  return testJob(
    job('forgetful', (flow) => {
      const keyed = flow.from(nothing, { uid: 'scores' }).keyBy((score) => score.key);
      operator(keyed).to(discard(), { uid: 'out' });
    }),
  );
}

/** What comes out when a score of 3, 5 and, `waitMs` after that, 2 and 1 points of one key come in. */
async function told(test: TestJob, waitMs: number): Promise<readonly unknown[]> {
  const scores = test.source<Score>('scores');
  const push = (points: number): void => void scores.push({ key: 'ann', points });
  push(3);
  push(5);
  await test.checkpoint();
  await test.restart({ parallelism: 2 });
  await test.advance(waitMs);
  push(2);
  await test.settle();
  push(1);
  await test.settle();
  return test.sink('out').records;
}

const ttl = { seconds: 1 };
const points = (score: unknown): unknown => (score as Score).points;

describe('with a time to live', () => {
  it.each([
    [999, [3]],
    [1000, [3, 2]],
  ])('deduplicate lets a record through again %i ms after the one that it let through', async (waitMs, expected) => {
    await using test = await forgetful((keyed) => keyed.deduplicate({ uid: 'once', ttl }));
    expect((await told(test, waitMs)).map(points)).toEqual(expected);
  });

  it.each([
    [999, [3, 8, 10, 11]],
    [1000, [3, 8, 2, 3]],
  ])('reduce begins anew %i ms after the last record of a key', async (waitMs, expected) => {
    const sum = (a: Score, b: Score): Score => ({ key: a.key, points: a.points + b.points });
    await using test = await forgetful((keyed) => keyed.reduce(sum, { uid: 'sums', ttl }));
    expect((await told(test, waitMs)).map(points)).toEqual(expected);
  });

  it.each([
    [999, [1, 2, 3, 4]],
    [1000, [1, 2, 1, 2]],
  ])('aggregate begins anew %i ms after the last record of a key', async (waitMs, expected) => {
    await using test = await forgetful((keyed) =>
      keyed.aggregate({
        uid: 'counts',
        ttl,
        accumulator: int64,
        output: int64,
        create: () => 0,
        add: (count) => count + 1,
        result: (count) => count,
      }),
    );
    expect(await told(test, waitMs)).toEqual(expected);
  });

  it.each([
    [999, ['3', '5,3']],
    [1000, ['3', '5,3', '2', '2,1']],
  ])('topN begins anew %i ms after the list of a key has changed', async (waitMs, expected) => {
    await using test = await forgetful((keyed) =>
      keyed.topN({
        uid: 'best',
        n: 2,
        ttl,
        compare: (a, b) => b.points - a.points,
        codec: msgpack<Score>(),
        output: string,
        result: (best) => best.map((score) => score.points).join(),
      }),
    );
    expect(await told(test, waitMs)).toEqual(expected);
  });
});

describe('broadcast maps', () => {
  const broadcasting = job('broadcasting', (flow) => {
    const rules = flow.from(generator<Score>({ record: () => ({ key: '', points: 0 }), records: 0 }), { uid: 'rules' });
    flow
      .from(nothing, { uid: 'scores' })
      .connectBroadcast(rules, {
        uid: 'ruled',
        broadcast: { texts: map(string, string) },
        output: int64,
        onBroadcast: (rule, maps) => maps.texts.set(rule.key, 'x'.repeat(rule.points)),
        onRecord: (_, maps, ctx) => ctx.emit(maps.texts.size),
      })
      .to(discard(), { uid: 'out' });
  });

  it('of up to a mebibyte are restored in every slot', async () => {
    await using test = await testJob(broadcasting, { splits: 2 });
    test.source<Score>('rules').push({ key: 'a', points: 500_000 }, { key: 'b', points: 500_000 });
    await test.checkpoint();
    await test.restart({ parallelism: 2 });
    test.source<Score>('scores').push({ key: 'x', points: 1 }, { key: 'y', points: 1 });
    await test.settle();
    const found = test.sink('out').emitted.map((one) => `${String(one.record)} texts in slot ${one.subtask}`);
    expect(found.toSorted()).toEqual(['2 texts in slot 0', '2 texts in slot 1']);
  });

  it('of more fail the job at its next checkpoint, in words', async () => {
    await using test = await testJob(broadcasting);
    test.source<Score>('rules').push({ key: 'a', points: 500_000 }, { key: 'b', points: 600_000 });
    await expect(test.checkpoint()).rejects.toMatchObject({
      code: 'broadcast-too-large',
      message: expect.stringMatching(/ruled.*the broadcast maps take 1100\d{3} bytes; 1048576 are allowed/),
    });
  });
});
