import { systemClock } from '@millrace/kernel';
import { string } from '@millrace/state';
import { describe, expect, it } from 'vitest';
import { job } from '../api/job.ts';
import type { Stream } from '../api/stream.ts';
import { buildGraph } from '../graph/build-graph.ts';
import { collect } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import { TestRun } from '../testing/test-run.ts';

/** Runs `0 … records - 1` through a step. */
async function results<U>(records: number, step: (numbers: Stream<number>) => Stream<U>): Promise<U[]> {
  const out: U[] = [];
  const graph = buildGraph(
    job('test', (flow) => step(flow.from(generator({ record: (i) => i, records, splits: 1 }))).to(collect(out))),
  );
  const run = await TestRun.start(graph);
  try {
    await run.toEnd();
  } finally {
    await run.close();
  }
  return out;
}

const never = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));

describe('an asynchronous step', () => {
  it('has one result when its time is over, whatever the call does later (FLINK-38082)', async () => {
    let aborted = 0;
    const out = await results(3, (numbers) =>
      numbers.mapAsync(
        async (n, { signal }) => {
          if (n !== 1) return `${n}`;
          signal.addEventListener('abort', () => aborted++);
          await new Promise((resolve) => systemClock.schedule(30, () => resolve(undefined)));
          return 'too late';
        },
        { timeout: 10, fallback: (n, error) => `${n}: ${(error as { code: string }).code}` },
      ),
    );
    await new Promise((resolve) => systemClock.schedule(40, () => resolve(undefined)));
    expect(out).toEqual(['0', '1: aec-timeout', '2']);
    expect(aborted).toBe(1);
  });

  it('fails the job when the last try has failed and there is no fallback, naming the failure', async () => {
    let tries = 0;
    const failing = results(1, (numbers) =>
      numbers.mapAsync(
        () => {
          tries++;
          throw new Error('service is down');
        },
        { retry: { attempts: 3, backoff: 1 } },
      ),
    );
    await expect(failing).rejects.toThrow('service is down');
    expect(tries).toBe(3);
  });

  it('does not try again what `when` says is in vain', async () => {
    let tries = 0;
    const out = await results(1, (numbers) =>
      numbers.lookupJoin({
        lookup: () => {
          tries++;
          throw new Error('not found');
        },
        retry: { attempts: 5, backoff: 1, when: (error) => (error as Error).message !== 'not found' },
        fallback: () => undefined,
        kind: 'left',
        output: string,
        pair: (n, found: string | undefined) => `${n} ${found}`,
      }),
    );
    expect([out, tries]).toEqual([['0 undefined'], 1]);
  });

  it('counts its tries and waits into one limit of time', async () => {
    const out = await results(1, (numbers) =>
      numbers.mapAsync(
        async () => {
          throw new Error('again');
        },
        { timeout: 30, retry: { attempts: 1_000_000, backoff: 1, backoffMax: 5 }, fallback: () => 'given up' },
      ),
    );
    expect(out).toEqual(['given up']);
  });

  it('tells calls that are under way to stop when the job stops', async () => {
    let stopped = 0;
    const graph = buildGraph(
      job('test', (flow) =>
        flow
          .from(generator({ record: (i) => i, records: 3, splits: 1 }))
          .mapAsync(async (_, { signal }) => {
            signal.addEventListener('abort', () => stopped++);
            return await never(signal);
          })
          .to(collect([])),
      ),
    );
    const run = await TestRun.start(graph);
    await run.step(1, 10);
    await run.close();
    expect(stopped).toBe(3);
  });

  it.each([{ concurrency: 0 }, { timeout: 0 }, { retry: { attempts: 0 } }])(
    'refuses %j before anything starts',
    async (options) => {
      await expect(results(1, (numbers) => numbers.mapAsync((n) => n, options))).rejects.toMatchObject({
        code: 'bad-argument',
      });
    },
  );
});
