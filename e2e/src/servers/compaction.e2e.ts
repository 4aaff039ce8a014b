import { expect, test } from 'vitest';
import { metricOf } from '../support/metrics.ts';
import { eventually, TestStack } from '../support/test-stack.ts';
import { expectExactCounts } from '../support/wordcount-result.ts';

const keys = 60_000;
const records = 450_000;
const env = { MILLRACE_METRICS_PORT: '0', MILLRACE_SLOT_MEMORY: '256m' };

function startCount(run: TestStack, changes: { compaction?: 'local' | 'remote' } = {}) {
  return run.client.startJob({
    job: 'wordcount',
    parallelism: 2,
    checkpointIntervalMs: 700,
    options: { keys, records, payloadBytes: 300, fill: true, recordsPerSecond: 30_000, output: run.path('out') },
    ...changes,
  });
}

test('compactors merge the state of a job, one of them is killed in the middle, and the result is exact', async () => {
  await using run = await TestStack.start({ runners: 1, slots: 2, compactors: 2, env });
  const job = await startCount(run);
  let figures = { remote: 0, fallbacks: 0, cleaned: 0 };
  const watch = setInterval(() => {
    void readFigures(run).then((now) => {
      if (now.remote > 0) figures = now;
    });
  }, 250);
  await eventually('a compactor at work', 60_000, async () =>
    (await metricOf(run, 'compactor-1', 'millrace_compactor_running')) > 0 ? true : undefined,
  );
  run.kill('compactor-1');
  const end = await job.result();
  clearInterval(watch);
  console.log(figures, run.events);
  expect(end).toMatchObject({ state: 'finished', generation: 1 });
  expect(figures.remote).toBeGreaterThan(3);
  const done = await metricOf(run, 'compactor-2', 'millrace_compactor_tasks_total', 'done');
  expect(done).toBeGreaterThan(0);
  expectExactCounts(run.path('out'), records, keys);
});

test('compactors that stand still and come back are given up, and the result is exact', async () => {
  await using run = await TestStack.start({ runners: 1, slots: 2, compactors: 1, env });
  const job = await startCount(run, { compaction: 'remote' });
  const pid = run.stack.pids['compactor-1'] as number;
  await eventually('the compactor at work', 60_000, async () =>
    (await metricOf(run, 'compactor-1', 'millrace_compactor_running')) > 0 ? true : undefined,
  );
  process.kill(pid, 'SIGSTOP');
  const fallbacks = await eventually('the runner does it by itself', 60_000, async () => {
    const { fallbacks } = await readFigures(run);
    return fallbacks > 0 ? fallbacks : undefined;
  });
  process.kill(pid, 'SIGCONT');
  const givenUp = eventually('the compactor knows', 20_000, async () =>
    (await metricOf(run, 'compactor-1', 'millrace_compactor_tasks_total', 'given-up')) > 0 ? true : undefined,
  );
  expect(fallbacks).toBeGreaterThan(0);
  expect(await givenUp).toBe(true);
  expect(await job.result()).toMatchObject({ state: 'finished', generation: 1 });
  expectExactCounts(run.path('out'), records, keys);
});

test('without any compactor a job that asks for them is compacted in its slots', async () => {
  await using run = await TestStack.start({ runners: 1, slots: 2, env });
  const job = await startCount(run, { compaction: 'remote' });
  const seen = await eventually('the runner does it by itself', 60_000, async () => {
    const now = await readFigures(run);
    return now.fallbacks > 0 ? now : undefined;
  });
  expect(seen).toMatchObject({ remote: 0 });
  expect(await job.result()).toMatchObject({ state: 'finished', generation: 1 });
  expectExactCounts(run.path('out'), records, keys);
});

async function readFigures(run: TestStack): Promise<{ remote: number; fallbacks: number; cleaned: number }> {
  const [remote, fallbacks, cleaned] = await Promise.all(
    ['merges', 'fallbacks', 'cleaned'].map((name) => metricOf(run, 'task-runner-1', `millrace_lsm_remote_${name}`)),
  );
  return { remote: remote ?? 0, fallbacks: fallbacks ?? 0, cleaned: cleaned ?? 0 };
}
