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

beforeAll(async () => {
  installTemporalRuntime(noTelemetry.log);
  const binary = await resolveTemporal();
  environment = await Environment.start((where) => startDevServer({ binary, ...where }));
  control = await environment.startControl();
  jobs = new Jobs(environment.address);
}, 60_000);

afterEach(async () => {
  await Promise.all(runners.splice(0).map((r) => r.stop()));
});

afterAll(async () => {
  await jobs.close();
  await environment.stop();
});

test('a job waits for slots, runs on two runners, takes checkpoints and ends with its input', async () => {
  await jobs.start({ job: 'ends', parallelism: 2, checkpointIntervalMs: 500 });
  await until('it waits for a runner', async () =>
    (await jobs.status('ends')).details.includes('Waiting for a task-runner'),
  );
  const first = await runner({ id: 'ends-1', slots: 1 });
  await until('it waits for slots', async () => (await jobs.status('ends')).state === 'waiting-for-slots');
  expect(first.host.attempts).toHaveLength(0);
  const second = await runner({ id: 'ends-2', slots: 1 });
  await until('two rounds', async () => (await jobs.loop('ends')).roundsDone >= 2);
  const status = await jobs.status('ends');
  expect(status).toMatchObject({ state: 'running', generation: 1, parallelism: 2 });
  expect(status.plan?.slots.map((slot) => slot.runnerId)).toEqual(['ends-1', 'ends-2']);
  expect(status.description?.operators.map((o) => o.uid)).toEqual(['source', 'count']);
  for (const { host } of [first, second]) host.latest.endInputs();
  const result = await jobs.result('ends');
  expect(result).toMatchObject({ state: 'finished', generation: 1, lastCheckpoint: { last: true } });
  expect(first.host.latest.completed.at(-1)).toBe(result.lastCheckpoint?.checkpoint);
});

test('an attempt that fails is followed by one that starts from the newest checkpoint', async () => {
  const { host } = await runner({ id: 'fails-1', slots: 2 });
  await jobs.start({ job: 'fails', parallelism: 2, checkpointIntervalMs: 300 });
  const entry = await until('a round', async () => (await jobs.loop('fails')).recent.at(-1));
  host.latest.fail(new Error('boom'));
  await until('the second attempt', () => host.attempts.length === 2);
  expect(host.latest.plan.generation).toBe(2);
  expect(host.latest.plan.restoreFrom).toMatch(/^fails\/checkpoints\/\d+-g1\.json$/);
  expect(Number(/(\d+)-g1/.exec(host.latest.plan.restoreFrom ?? '')?.[1])).toBeGreaterThanOrEqual(entry.checkpoint);
  await until('it is running', async () => (await jobs.status('fails')).state === 'running');
  expect((await jobs.status('fails')).lastFailure).toContain('boom');
  host.latest.endInputs();
  expect(await jobs.result('fails')).toMatchObject({ state: 'finished', generation: 2 });
});

test('a runner that disappears is noticed within seconds and the job goes on elsewhere', async () => {
  const lost = await runner({ id: 'lost-1', slots: 1 });
  await jobs.start({ job: 'lost', checkpointIntervalMs: 60_000 });
  await until('it is running', () => lost.host.attempts.length === 1);
  const other = await runner({ id: 'lost-2', slots: 1 });
  lost.disappear();
  const startMs = Date.now();
  await until('the second attempt', () => other.host.attempts.length === 1);
  expect(Date.now() - startMs).toBeLessThan(15_000);
  expect((await jobs.status('lost')).lastFailure).toContain('lost-1');
  await until('the old part is told to stop', () => lost.host.latest.cancelledBecause);
  other.host.latest.endInputs();
  expect(await jobs.result('lost')).toMatchObject({ state: 'finished', generation: 2 });
});

test('a cancelled job stops its slots and says so', async () => {
  const { host } = await runner({ id: 'cancel-1', slots: 1 });
  const handle = await jobs.start({ job: 'cancel', checkpointIntervalMs: 60_000 });
  await until('it is running', () => host.attempts.length === 1);
  await handle.cancel();
  await expect(handle.result()).rejects.toThrow(/cancel/i);
  await until('the slots are told', () => host.latest.cancelledBecause);
  expect((await jobs.status('cancel')).state).toBe('cancelled');
});

test('a runner that shuts down hands its job over without using up the failure budget', async () => {
  const leaving = await runner({ id: 'leave-1', slots: 1 });
  await jobs.start({ job: 'leave', checkpointIntervalMs: 60_000, failuresMax: 0 });
  await until('it is running', () => leaving.host.attempts.length === 1);
  const staying = await runner({ id: 'leave-2', slots: 1 });
  await leaving.stop();
  await until('the second attempt', () => staying.host.attempts.length === 1);
  staying.host.latest.endInputs();
  expect(await jobs.result('leave')).toMatchObject({ state: 'finished', generation: 2 });
});

test('a claimed slot that no attempt uses is offered again', async () => {
  const { worker, host } = await runner({ id: 'lease-1', slots: 1, leaseMs: 500 });
  const two = await jobs.start({ job: 'lease-two', parallelism: 2, checkpointIntervalMs: 60_000 });
  await until('it waits for slots', async () => (await jobs.status('lease-two')).state === 'waiting-for-slots');
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  await two.cancel();
  await expect(two.result()).rejects.toThrow(/cancel/i);
  await jobs.start({ job: 'lease-one', checkpointIntervalMs: 60_000 });
  await until('the slot is used', () => host.attempts.length === 1);
  expect(worker.slotsInUse).toBe(1);
  expect(host.latest.plan.id).toBe('lease-one');
  host.latest.endInputs();
  await jobs.result('lease-one');
});

test('options that the job does not know end it at once, naming the path', async () => {
  await runner({ id: 'options-1', slots: 1 });
  await jobs.start({ job: 'options', options: { bad: 1 } });
  await expect(jobs.result('options')).rejects.toMatchObject({
    cause: { type: 'job-options', message: 'options.bad: is not an option' },
  });
});

// Each takes two starts of a control plane: all of them with MILLRACE_SLOW_TESTS=1.
const crashPoints = ['register.after-commit', 'barrier.after-inject', 'drain.after-write', 'link.after-hold'];
test.each(crashPoints.slice(0, process.env.MILLRACE_SLOW_TESTS === '1' ? undefined : 1))(
  'a control plane that is killed at %s is replaced and the round ends well',
  async (point) => {
    const job = `dies-${point.replaceAll('.', '-')}`;
    const { host } = await runner({ id: job, slots: 1 });
    await control.kill('SIGKILL');
    const dying = await environment.startControl({ MILLRACE_FAILPOINT: `${point}:crash` });
    await jobs.start({ job, checkpointIntervalMs: 300 });
    await dying.exited;
    control = await environment.startControl();
    await until('two rounds', async () => (await jobs.loop(job)).roundsDone >= 2, 60_000);
    expect((await jobs.loop(job)).roundsFailed).toBe(0);
    expect(host.latest.barriers.slice(0, 2)).toEqual([1, 2]);
    host.latest.endInputs();
    expect(await jobs.result(job)).toMatchObject({ state: 'finished', generation: 1 });
  },
  90_000,
);

test('an attempt survives kill -9 of Temporal and of the control plane', async () => {
  const { host } = await runner({ id: 'outage-1', slots: 1 });
  await jobs.start({ job: 'outage', checkpointIntervalMs: 400 });
  const before = await until('a round', async () => (await jobs.loop('outage')).recent.at(-1));
  await environment.killServer();
  await control.kill('SIGKILL');
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  expect(host.latest.cancelledBecause).toBeUndefined();
  await environment.startServer();
  control = await environment.startControl();
  await until(
    'later rounds',
    async () => ((await jobs.loop('outage')).recent.at(-1)?.checkpoint ?? 0) > before.checkpoint + 1,
    60_000,
  );
  expect(host.attempts).toHaveLength(1);
  host.latest.endInputs();
  expect(await jobs.result('outage')).toMatchObject({ state: 'finished', generation: 1 });
}, 120_000);
