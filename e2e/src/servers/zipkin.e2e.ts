import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually, TestStack } from '../support/test-stack.ts';
import { ZipkinServer, type ZipkinSpan } from '../support/zipkin/zipkin-server.ts';

let zipkin: ZipkinServer;
beforeAll(async () => {
  zipkin = await ZipkinServer.start();
}, 900_000);
afterAll(() => zipkin?.[Symbol.asyncDispose]());

/** Names from the trace's root down to the span; begins with `?` when an ancestor never came. */
function pathOf(trace: readonly ZipkinSpan[], span: ZipkinSpan): string[] {
  if (span.parentId === undefined) return [span.name];
  const parent = trace.find(({ id }) => id === span.parentId);
  return [...(parent === undefined ? ['?'] : pathOf(trace, parent)), span.name];
}

test('Zipkin shows a checkpoint of a job on two runners as one trace, from the workflow to each object that is put', async () => {
  await using run = await TestStack.start({ runners: 2, slots: 1, env: zipkin.env });
  const job = await run.client.startJob({
    job: 'orders',
    parallelism: 2,
    checkpointIntervalMs: 500,
    options: { orders: 20_000, recordsPerSecond: 6000, output: run.path('out') },
  });
  expect(await job.result()).toMatchObject({ state: 'finished' });
  const root = 'runworkflow:checkpointround';
  const rounds = await eventually('three rounds with flushes in Zipkin', 30_000, async () => {
    const traces = await zipkin.traces(root);
    const whole = traces.filter((trace) => trace.some(({ name }) => name === 'lsm.flush'));
    return whole.length >= 3 ? whole : undefined;
  });
  for (const trace of rounds) {
    const paths = trace.map((span) => pathOf(trace, span));
    expect(paths.filter(([first]) => first !== root)).toEqual([]);
    expect(paths.map((path) => path.at(-1))).toEqual(
      expect.arrayContaining(['runactivity:register', 'subtask.drain', 'state.snapshot', 'dfs.putifabsent']),
    );
    const services = new Set(trace.map(({ localEndpoint }) => localEndpoint?.serviceName));
    expect(services).toEqual(new Set(['control-plane', 'task-runner']));
  }
});
