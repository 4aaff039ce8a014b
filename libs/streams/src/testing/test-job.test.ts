import { bool, int64, msgpack, string, value } from '@millrace/state';
import { describe, expect, it } from 'vitest';
import type { Flow } from '../api/flow.ts';
import { type Job, job } from '../api/job.ts';
import { sideTag } from '../api/side-tag.ts';
import { boundedOutOfOrderness } from '../api/watermarks.ts';
import { tumbling } from '../api/windows.ts';
import { collect, discard } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import { testJob } from './test-job.ts';

interface Click {
  readonly user: string;
  readonly atMs: number;
}

const never = generator<Click>({ record: () => ({ user: 'nobody', atMs: 0 }), records: 0 });
const many = sideTag<Click>('many', msgpack<Click>());

/** The number of clicks of each user, running; every third click goes aside; clicks of a minute; users who are silent. */
const clicks: Job = job('clicks', (flow: Flow) => {
  const users = flow
    .from(never, { uid: 'clicks', timestamp: (click) => click.atMs, watermarks: boundedOutOfOrderness(100) })
    .keyBy((click) => click.user);
  const counted = users.process({
    uid: 'counts',
    state: { count: value(int64) },
    output: string,
    async onRecord(click, ctx) {
      const count = ((await ctx.state.count.get()) ?? 0) + 1;
      ctx.state.count.set(count);
      ctx.emit(`${click.user} ${count}`);
      if (count % 3 === 0) ctx.side(many, click);
    },
  });
  counted.to(discard(), { uid: 'running' });
  counted.sideOutput(many).to(discard(), { uid: 'many' });
  users
    .window(tumbling(1000), { uid: 'seconds' })
    .aggregate({
      accumulator: int64,
      output: string,
      create: () => 0,
      add: (n) => n + 1,
      result: (n, user, window) => `${user} ${n} before ${window.endMs}`,
    })
    .to(discard(), { uid: 'seconds-out' });
  users
    .process({
      uid: 'silent',
      state: { spoke: value(bool, { ttl: { durationMs: 5000 } }) },
      output: string,
      onRecord(_, ctx) {
        ctx.state.spoke.set(true);
        ctx.processingTimers.at(ctx.processingMs + 1000);
      },
      async onProcessingTimer(timeMs, ctx) {
        const spoke = (await ctx.state.spoke.get()) ?? false;
        ctx.emit(`${ctx.key} ${spoke ? 'spoke' : 'silent'} at ${timeMs}`);
        if (timeMs < 10_000) ctx.processingTimers.at(timeMs + 2000);
      },
    })
    .to(discard(), { uid: 'silent-out' });
});

const click = (user: string, atMs: number): Click => ({ user, atMs });

describe('a job under test', () => {
  it('gives its sinks and side outputs what follows from the records pushed so far', async () => {
    await using test = await testJob(clicks);
    test.source<Click>('clicks').push(click('ann', 10), click('bob', 20), click('ann', 30), click('ann', 40));
    await test.settle();
    expect(test.sink('running').records).toEqual(['ann 1', 'bob 1', 'ann 2', 'ann 3']);
    expect(test.sink('running').emitted.map((one) => one.timestampMs)).toEqual([10, 20, 30, 40]);
    expect(test.side('counts', many).records).toEqual([click('ann', 40)]);
    expect(test.sink('many').records).toEqual([click('ann', 40)]);
    test.source('clicks').push(click('bob', 50));
    await test.settle();
    expect(test.sink('running').records.at(-1)).toBe('bob 2');
  });

  it('moves event time by the records, by watermarks, and at the end of the input', async () => {
    await using test = await testJob(clicks);
    const source = test.source<Click>('clicks').push(click('ann', 10), click('ann', 20), click('ann', 1050));
    await test.settle();
    expect(test.sink('seconds-out').records).toEqual([]);
    source.push(click('ann', 1101));
    await test.settle();
    expect(test.sink('seconds-out').records).toEqual(['ann 2 before 1000']);
    source.watermark(2000);
    await test.settle();
    expect(test.sink('seconds-out').records).toEqual(['ann 2 before 1000', 'ann 2 before 2000']);
    source.push(click('bob', 4000));
    await test.finish();
    expect(test.sink('seconds-out').records.at(-1)).toBe('bob 1 before 5000');
  });

  it('leaves watermarks to the test alone where that is wanted', async () => {
    await using test = await testJob(clicks, { watermarks: 'pushed', parallelism: 2 });
    test.source<Click>('clicks').push(click('ann', 10), click('ann', 9999), click('ann', 20)).watermark(999);
    await test.settle();
    expect(test.sink('seconds-out').records).toEqual(['ann 2 before 1000']);
  });

  it('lets time pass: processing timers fire in order, and state outlives its time to live', async () => {
    await using test = await testJob(clicks, { nowMs: 500 });
    test.source<Click>('clicks').push(click('ann', 0));
    await test.advance(999);
    expect(test.sink('silent-out').records).toEqual([]);
    await test.advance({ ms: 1 });
    expect(test.sink('silent-out').records).toEqual(['ann spoke at 1500']);
    await test.advance({ seconds: 60 });
    expect(test.sink('silent-out').records).toEqual([
      'ann spoke at 1500',
      'ann spoke at 3500',
      'ann silent at 5500',
      'ann silent at 7500',
      'ann silent at 9500',
      'ann silent at 11500',
    ]);
  });

  it.each(['aligned', 'unaligned'] as const)(
    'goes on after a crash from a checkpoint (%s), with more slots and with fewer',
    async (mode) => {
      const users = Array.from({ length: 20 }, (_, i) => `u${i}`);
      await using test = await testJob(clicks, {
        splits: 4,
        stateLatencyTurns: 5,
        inFlightLimit: 7,
        workingSetBytes: 1,
      });
      const source = test.source<Click>('clicks');
      const round = (n: number): void => void source.push(...users.map((user) => click(user, n * 10)));
      const parallelisms = [1, 3, 2];
      for (const [n, parallelism] of parallelisms.entries()) {
        await test.restart({ parallelism });
        round(n);
        await test.checkpoint(mode);
        round(100);
        await test.settle();
        await test.restart();
      }
      await test.finish();
      const expected = users.flatMap((user) => [1, 2, 3, 4, 5, 6].map((n) => `${user} ${n}`));
      expect(test.sink<string>('running').records.toSorted()).toEqual(expected.toSorted());
      expect(test.side('counts', many).records).toHaveLength(40);
    },
  );

  it('goes back to an older checkpoint, and to none', async () => {
    await using test = await testJob(clicks);
    const source = test.source<Click>('clicks').push(click('ann', 1));
    const first = await test.checkpoint();
    source.push(click('ann', 2));
    await test.checkpoint();
    await test.restart({ from: first, parallelism: 2 });
    expect(test.sink('running').records).toEqual(['ann 1']);
    await test.settle();
    expect(test.sink('running').records).toEqual(['ann 1', 'ann 2']);
  });

  it('starts empty after a crash before the first checkpoint', async () => {
    await using test = await testJob(clicks);
    test.source<Click>('clicks').push(click('ann', 1));
    await test.settle();
    await test.restart();
    await test.settle();
    expect(test.sink('running').records).toEqual(['ann 1']);
  });

  it('fails where it is told to, names the operator, and goes on after a restart', async () => {
    await using test = await testJob(clicks);
    const source = test.source<Click>('clicks').push(click('ann', 1));
    await test.checkpoint();
    test.failAt('counts', { record: 2 });
    source.push(click('ann', 2), click('ann', 3));
    await expect(test.settle()).rejects.toThrow(/counts was told to fail/);
    await test.restart();
    test.failAt('seconds', 'checkpoint', new Error('the disk is full'));
    await test.settle();
    await expect(test.checkpoint()).rejects.toThrow(/the disk is full/);
    await test.restart();
    await test.finish();
    expect(test.sink('running').records).toEqual(['ann 1', 'ann 2', 'ann 3']);
  });

  it('fails as its handlers do', async () => {
    const strict = job('strict', (flow) => {
      const source = generator({ record: (i) => i, records: 0 });
      flow
        .from(source, { uid: 'numbers' })
        .map((n) => {
          if (n < 0) throw new Error(`${n} is negative`);
          return n;
        })
        .to(discard(), { uid: 'out' });
    });
    await using test = await testJob(strict);
    test.source<number>('numbers').push(1, -2);
    await expect(test.settle()).rejects.toThrow(/-2 is negative/);
  });

  it('keeps the sources and sinks that it is told to keep', async () => {
    const seen: number[] = [];
    const kept = job('kept', (flow) =>
      flow
        .from(generator({ record: (i) => i, records: 10, recordsPerSecond: 5 }), { uid: 'numbers' })
        .to(collect(seen), { uid: 'out' }),
    );
    await using test = await testJob(kept, { keep: ['numbers', 'out'] });
    await test.finish();
    expect(seen.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 10 }, (_, i) => i));
    expect(test.clock.nowMs()).toBeGreaterThanOrEqual(1000);
  });

  it('says what there is when a name is wrong', async () => {
    await using test = await testJob(clicks);
    expect(() => test.source('klicks')).toThrow(/no source klicks; there is clicks/);
    expect(() => test.sink('clicks')).toThrow(/no sink clicks; there is running, many, seconds-out, silent-out/);
    expect(() => test.side('seconds', many)).toThrow(/no side output seconds\/many; there is counts\/many/);
    expect(() => test.failAt('count', 'checkpoint')).toThrow(/no operator count/);
    await expect(testJob(clicks, { keep: ['clocks'] })).rejects.toThrow(/keep names clocks/);
  });

  it('waits for no work that needs time to pass, and says where it hangs', { timeout: 20_000 }, async () => {
    let calls = 0;
    const flaky = job('flaky', (flow) => {
      flow
        .from(generator<number>({ record: (i) => i, records: 0 }), { uid: 'numbers' })
        .mapAsync(
          async (n) => {
            if (++calls < 3) throw new Error('busy');
            return n;
          },
          { uid: 'asking', retry: { attempts: 5, backoff: { seconds: 10 } }, timeout: { minutes: 5 } },
        )
        .to(discard(), { uid: 'out' });
    });
    await using test = await testJob(flaky, { settleMs: 200 });
    test.source<number>('numbers').push(7);
    await expect(test.settle()).rejects.toThrow(/under way in asking; if they wait for time to pass, call advance/);
    await test.advance({ minutes: 1 });
    expect(test.sink('out').records).toEqual([7]);
  });
});
