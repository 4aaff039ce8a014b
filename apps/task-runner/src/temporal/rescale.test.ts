import { controlQueue, type RescaleResult } from '@millrace/proto';
import { noTelemetry } from '@millrace/telemetry';
import { installTemporalRuntime } from '@millrace/temporal';
import { resolveTemporal, startDevServer } from '@millrace/temporal-server';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';

import { type ControlProcess, Environment } from './testing/environment.ts';
import { Jobs, until } from './testing/jobs.ts';
import { type ScriptedRunner, type ScriptedRunnerOptions, startScriptedRunner } from './testing/scripted-runner.ts';

let environment: Environment;
let jobs: Jobs;
let control: ControlProcess;
const runners: ScriptedRunner[] = [];

async function runner(options: Omit<ScriptedRunnerOptions, 'address'>): Promise<ScriptedRunner> {
  const started = await startScriptedRunner({ address: environment.address, ...options });
  runners.push(started);
  return started;
}

function rescale(id: string, order: unknown): Promise<RescaleResult> {
  return jobs.client.workflow.getHandle(id).executeUpdate<RescaleResult, [unknown]>('rescale', { args: [order] });
}

beforeAll(async () => {
  installTemporalRuntime(noTelemetry.log);
  const binary = await resolveTemporal();
  environment = await Environment.start((where) => startDevServer({ binary, ...where }));
  control = await environment.startControl();
  jobs = new Jobs(environment.address);
}, 60_000);

afterEach(async () => {
  // A job that a failed test has left would take the slots of the next.
  for await (const { workflowId } of jobs.client.workflow.list({
    query: "WorkflowType = 'job' AND ExecutionStatus = 'Running'",
  })) {
    await jobs.client.workflow.getHandle(workflowId).terminate();
  }
  await Promise.all(runners.splice(0).map((r) => r.stop()));
});

afterAll(async () => {
  await jobs.close();
  await environment.stop();
});

test('a job is rescaled up and down: each attempt stops with a checkpoint, the next starts from it on the same slots', async () => {
  const { host, worker } = await runner({ id: 'up-1', slots: 3 });
  await jobs.start({ job: 'up', parallelism: 1, checkpointIntervalMs: 60_000 });
  await until('it runs', () => host.attempts.length === 1);
  const [lease] = host.latest.plan.slots;
  const up = await rescale('up', { parallelism: 3 });
  expect(up).toMatchObject({ id: 'up', from: 1, to: 3, generation: 2, checkpoint: 1 });
  expect(up.downtimeMs).toBeLessThan(5_000);
  expect(host.attempts[0]).toMatchObject({ stops: [1], completed: [1] });
  expect(host.latest.plan).toMatchObject({ parallelism: 3, restoreFrom: 'up/checkpoints/1-g1.json' });
  expect(host.latest.plan.slots.map((slot) => slot.lease)).toContain(lease?.lease);
  expect(worker.slotsInUse).toBe(3);
  const down = await rescale('up', { parallelism: 2 });
  expect(down).toMatchObject({ from: 3, to: 2, generation: 3, checkpoint: 2 });
  await until('the slot that is not needed is free', () => worker.slotsInUse === 2);
  expect(await jobs.status('up')).toMatchObject({ state: 'running', parallelism: 2, failures: 0, operation: null });
  host.latest.endInputs();
  expect(await jobs.result('up')).toMatchObject({ state: 'finished', generation: 3 });
});

test('what cannot be done is refused in words, and the job does not notice', async () => {
  const { host } = await runner({ id: 'refused-1', slots: 1 });
  await jobs.start({ job: 'refused', checkpointIntervalMs: 60_000 });
  await until('it runs', () => host.attempts.length === 1);
  const cases: readonly (readonly [unknown, RegExp])[] = [
    [{ parallelism: 0 }, /"parallelism": give a whole number from 1/],
    [null, /"parallelism" is missing/],
    [[2], /The input is a list/],
    ['two', /The input is a string/],
    [{ parallelism: '2' }, /"parallelism": give a whole number/],
    [{ parallelism: 129 }, /129 is more than .* 128/],
    [{ parallelism: 1 }, /runs at parallelism 1 already/],
    [{ paralelism: 2 }, /Unknown field "paralelism"/],
  ];
  for (const [order, words] of cases) {
    await expect(rescale('refused', order)).rejects.toMatchObject({ cause: { message: expect.stringMatching(words) } });
  }
  expect(host.latest.barriers).toEqual([]);
  host.latest.endInputs();
  expect(await jobs.result('refused')).toMatchObject({ state: 'finished', generation: 1 });
});

test('without the slots that it needs, a rescale ends in words and the job was never stopped', async () => {
  const { host } = await runner({ id: 'full-1', slots: 1 });
  await jobs.start({ job: 'full', checkpointIntervalMs: 60_000 });
  await until('it runs', () => host.attempts.length === 1);
  await expect(rescale('full', { parallelism: 2, timeoutMs: 1_000 })).rejects.toMatchObject({
    cause: { type: 'no-free-slots', message: expect.stringMatching(/No 1 free slot/) },
  });
  expect(await jobs.status('full')).toMatchObject({ state: 'running', generation: 1, parallelism: 1 });
  host.latest.endInputs();
  expect(await jobs.result('full')).toMatchObject({ state: 'finished', generation: 1 });
});

test('a new attempt that fails is rolled back to the old parallelism', async () => {
  const { host } = await runner({
    id: 'back-1',
    slots: 2,
    onStart: (attempt) => {
      if (attempt.plan.parallelism === 2) attempt.fail(new Error('no room for two'));
    },
  });
  await jobs.start({ job: 'back', checkpointIntervalMs: 60_000, failuresMax: 0 });
  await until('it runs', () => host.attempts.length === 1);
  await expect(rescale('back', { parallelism: 2 })).rejects.toMatchObject({
    cause: { type: 'rescale-rolled-back', message: expect.stringMatching(/goes on at 1.*no room for two/) },
  });
  expect(await jobs.status('back')).toMatchObject({ state: 'running', generation: 3, parallelism: 1, failures: 0 });
  expect(host.latest.plan.restoreFrom).toBe('back/checkpoints/1-g1.json');
  host.latest.endInputs();
  expect(await jobs.result('back')).toMatchObject({ state: 'finished' });
});

test('a new attempt that does not come up in time is rolled back', async () => {
  const { host } = await runner({
    id: 'slow-1',
    slots: 2,
    onStart: (attempt) => {
      if (attempt.plan.parallelism === 2) attempt.recordsIn = undefined;
    },
  });
  await jobs.start({ job: 'slow', checkpointIntervalMs: 60_000 });
  await until('it runs', () => host.attempts.length === 1);
  await expect(rescale('slow', { parallelism: 2, timeoutMs: 2_000 })).rejects.toMatchObject({
    cause: { type: 'rescale-rolled-back' },
  });
  expect(await jobs.status('slow')).toMatchObject({ state: 'running', parallelism: 1, failures: 0 });
  host.latest.endInputs();
  expect(await jobs.result('slow')).toMatchObject({ state: 'finished' });
});

test('a last checkpoint that fails leaves the job as it is', async () => {
  const { host } = await runner({ id: 'round-1', slots: 2 });
  await jobs.start({ job: 'round', checkpointIntervalMs: 60_000, roundTimeoutMs: 1_000 });
  await until('it runs', () => host.attempts.length === 1);
  host.latest.onBarrier = () => new Promise(() => undefined);
  await expect(rescale('round', { parallelism: 2 })).rejects.toMatchObject({ cause: { type: 'stop-failed' } });
  host.latest.onBarrier = undefined;
  expect(await jobs.status('round')).toMatchObject({ state: 'running', generation: 1, parallelism: 1 });
  host.latest.endInputs();
  expect(await jobs.result('round')).toMatchObject({ state: 'finished', generation: 1 });
});

test('an attempt that fails while it is to stop is followed by one at the new parallelism', async () => {
  const { host } = await runner({ id: 'meanwhile-1', slots: 2 });
  await jobs.start({ job: 'meanwhile', checkpointIntervalMs: 60_000 });
  await until('it runs', () => host.attempts.length === 1);
  const { latest } = host;
  latest.onBarrier = () => latest.fail(new Error('died at the barrier'));
  expect(await rescale('meanwhile', { parallelism: 2 })).toMatchObject({ from: 1, to: 2, checkpoint: null });
  expect(await jobs.status('meanwhile')).toMatchObject({ state: 'running', parallelism: 2 });
  host.latest.endInputs();
  expect(await jobs.result('meanwhile')).toMatchObject({ state: 'finished', generation: 2 });
});

// Each takes two starts of a control plane: all of them with MILLRACE_SLOW_TESTS=1.
const crashPoints = [
  'register.after-commit',
  'barrier.before-record',
  'barrier.before-inject',
  'barrier.after-inject',
  'drain.before-write',
  'drain.after-write',
  'link.before-hold',
  'link.after-hold',
  'register.before-commit',
  'register.after-complete',
  'claim.after-commit',
];
test.each(crashPoints.slice(0, process.env.MILLRACE_SLOW_TESTS === '1' ? undefined : 1))(
  'a control plane that is killed at %s is replaced, and the rescale goes on where it was',
  async (point) => {
    const job = `dies-${point.replaceAll('.', '-')}`;
    const { host } = await runner({ id: job, slots: 2 });
    await jobs.start({ job, checkpointIntervalMs: 3_600_000 });
    await until('it runs', () => host.attempts.length === 1);
    await control.kill('SIGKILL');
    const dying = await environment.startControl({ MILLRACE_FAILPOINT: `${point}:crash` });
    const rescaled = await jobs.client.workflow.start('rescale', {
      workflowId: `${job}:rescale`,
      taskQueue: controlQueue,
      args: [{ job, parallelism: 2 }],
    });
    await dying.exited;
    control = await environment.startControl();
    expect(await rescaled.result()).toMatchObject({ id: job, from: 1, to: 2, checkpoint: 1 });
    // A slot may have lapsed while nobody coordinated: then one attempt more was planned.
    expect(host.latest.plan).toMatchObject({ parallelism: 2, restoreFrom: `${job}/checkpoints/1-g1.json` });
    expect(host.attempts[0]).toMatchObject({ barriers: [1], stops: [1] });
    host.latest.endInputs();
    expect(await jobs.result(job)).toMatchObject({ state: 'finished' });
  },
  // On a busy machine a control plane takes long to start.
  300_000,
);
