import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectMillrace, type MillraceClient } from '@millrace/client';
import { openDfs } from '@millrace/dfs';
import { systemClock, systemRandom } from '@millrace/kernel';
import { controlQueue, type JobInput, type Json, jobCodeQueue } from '@millrace/proto/control';
import { noTelemetry } from '@millrace/telemetry';
import { type DevServer, freePort, resolveTemporal, startDevServer } from '@millrace/temporal-server';
import { NativeConnection, Worker } from '@temporalio/worker';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { noFailPoints } from './activities/fail-points.ts';
import { jobSettings, parseJobInput } from './activities/job-input.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { claimed } from './record/transitions.ts';
import { controlSettings } from './settings.ts';
import { UfsControlStorage } from './storage/ufs-control-storage.ts';
import { installTemporalRuntime } from './worker/runtime.ts';
import { workerTracing } from './worker/tracing.ts';
import { bundleWorkflows } from './worker/workflow-bundle.ts';

const directory = mkdtempSync(join(tmpdir(), 'millrace-control-'));
let server: DevServer;
let client: MillraceClient;
let plane: ControlPlane;

async function start(env: Readonly<Record<string, string>> = {}): Promise<ControlPlane> {
  const shared = { clock: systemClock, random: systemRandom, telemetry: noTelemetry };
  const settings = controlSettings({
    MILLRACE_TEMPORAL_ADDRESS: server.address,
    MILLRACE_STATE: `file://${directory}/state?fsync=false`,
    MILLRACE_CONSOLE_PORT: '0',
    ...env,
  });
  return await startControlPlane({
    ...shared,
    settings,
    dfs: await openDfs(settings.state, shared),
    workflowBundle: await bundleWorkflows(noTelemetry.log),
    failPoint: noFailPoints,
    activeSpan: () => undefined,
    tracing: workerTracing(undefined),
    metrics: () => '# HELP x\n',
  });
}

beforeAll(async () => {
  installTemporalRuntime(noTelemetry.log);
  server = await startDevServer({
    binary: await resolveTemporal(),
    dataDir: join(directory, 'temporal'),
    port: 0,
    uiPort: 0,
  });
  plane = await start();
  await plane.polling;
  client = await connectMillrace({ address: server.address });
}, 120_000);

afterAll(async () => {
  await client?.close();
  await plane?.stop();
  await server?.stop();
  rmSync(directory, { recursive: true, force: true });
});

test.each<[string, Json, string]>([
  ['nothing', null, 'The input is empty'],
  ['a list', ['flights'], 'The input is a list'],
  ['a string', 'flights', 'The input is a string'],
  ['a wrong field', { job: 'a', parallelism: 'two' }, 'Field "parallelism"'],
  ['an unknown field', { job: 'a', paralelism: 2 }, 'Unknown field "paralelism"'],
])('a job started with %s fails at once and says why', async (name, input, words) => {
  const workflowId = `bad-${name.replaceAll(' ', '-')}`;
  await client.temporal.workflow.start('job', { workflowId, taskQueue: controlQueue, args: [input] });
  await expect(client.job(workflowId).result()).rejects.toMatchObject({
    code: 'job-input',
    message: expect.stringContaining(words) as string,
  });
  expect((await client.job(workflowId).status()).state).toBe('failed');
});

test('a second start of a running job is a typed error', async () => {
  const input: JobInput = { job: 'twice' };
  const job = await client.startJob(input);
  await expect(client.startJob(input)).rejects.toMatchObject({ code: 'job-already-running', details: { id: 'twice' } });
  await expect(job.checkpointNow()).rejects.toMatchObject({ code: 'job-not-found' });
  expect(await job.status()).toMatchObject({
    state: 'starting',
    details: expect.stringContaining('Waiting for a task-runner') as string,
  });
  await job.cancel();
  await expect(job.result()).rejects.toMatchObject({ code: 'cancelled' });
  expect((await job.status()).state).toBe('cancelled');
});

test('a job started under any workflow id runs as the workflow of its own id', async () => {
  const workflow = await client.temporal.workflow.start('job', {
    workflowId: 'typed-by-hand',
    taskQueue: controlQueue,
    args: [{ job: 'wrapped' }],
  });
  await expect
    .poll(async () => (await client.job('wrapped').status()).details, { timeout: 60_000 })
    .toContain('Waiting for a task-runner');
  await workflow.signal('cancel');
  expect(await workflow.result()).toMatchObject({ id: 'wrapped', state: 'cancelled' });
  await expect(client.job('wrapped').result()).rejects.toMatchObject({ code: 'cancelled' });
});

test('a claim that an earlier run had left under way does not stop the job that lives', async () => {
  const job = await client.startJob({ job: 'late' });
  await expect
    .poll(async () => (await job.status()).details, { timeout: 60_000 })
    .toContain('Waiting for a task-runner');
  // The job has looked at its record (there is none); now the earlier run's claim takes effect.
  const shared = { clock: systemClock, random: systemRandom, telemetry: noTelemetry };
  const dfs = await openDfs(`file://${directory}/state?fsync=false`, shared);
  const storage = new UfsControlStorage({ ...shared, dfs });
  const settings = { ...jobSettings(parseJobInput({ job: 'late' }), undefined) };
  await storage.claimRecord('late', 'earlier', (record, generation) =>
    claimed(record, generation, { settings, run: 'earlier', claim: 'earlier', previous: 0 }),
  );
  const connection = await NativeConnection.connect({ address: server.address });
  const loader = await Worker.create({
    connection,
    taskQueue: jobCodeQueue,
    activities: { describeJob: () => Promise.resolve({ job: 'late', codeHash: 'code', operators: [], edges: [] }) },
  });
  await loader.runUntil(async () => {
    await expect.poll(async () => (await job.status()).state, { timeout: 60_000 }).toBe('waiting-for-slots');
  });
  expect((await job.status()).generation).toBe(2);
  expect(await storage.readRecord('late')).toMatchObject({ generation: 2 });
  await job.cancel();
  await expect(job.result()).rejects.toMatchObject({ code: 'cancelled' });
  await connection.close();
  await dfs.close();
});

test('a job that does not exist is a typed error', async () => {
  await expect(client.job('nobody').status()).rejects.toMatchObject({
    code: 'job-not-found',
    details: { id: 'nobody' },
  });
});

test('no Temporal at the address is a set-up error that names the setting', async () => {
  const address = `127.0.0.1:${await freePort()}`;
  await expect(connectMillrace({ address, timeoutMs: 1_000 })).rejects.toMatchObject({
    code: 'temporal-unreachable',
    message: expect.stringContaining('MILLRACE_TEMPORAL_ADDRESS') as string,
  });
});

test('the console shows jobs, metrics and health', async () => {
  await client.startJob({ job: 'shown' });
  await expect
    .poll(
      async () => ((await (await fetch(`${plane.consoleUrl}/api/jobs`)).json()) as { id: string }[]).map((j) => j.id),
      { timeout: 60_000 },
    )
    .toContain('shown');
  const job = await fetch(`${plane.consoleUrl}/api/jobs/shown`);
  expect(await job.json()).toMatchObject({ status: { id: 'shown', state: 'starting' }, loop: null, record: null });
  expect((await fetch(`${plane.consoleUrl}/api/jobs/nobody`)).status).toBe(404);
  expect(await (await fetch(`${plane.consoleUrl}/healthz`)).json()).toEqual({ healthy: true });
  expect(await (await fetch(`${plane.consoleUrl}/metrics`)).text()).toContain('# HELP');
  expect(await (await fetch(plane.consoleUrl)).text()).toContain('<title>Millrace</title>');
  await client.job('shown').cancel();
});

test('a namespace without the search attributes is a set-up error that names the command', async () => {
  await client.temporal.workflowService.registerNamespace({
    namespace: 'bare',
    workflowExecutionRetentionPeriod: { seconds: 86_400 as never },
  });
  const other = await start({ MILLRACE_NAMESPACE: 'bare' });
  await expect(other.polling).rejects.toMatchObject({
    code: 'search-attributes-missing',
    message: expect.stringContaining(
      'temporal operator search-attribute create --namespace bare --name millraceJob --type Keyword',
    ) as string,
  });
  await other.stop();
});

test.each([
  [{ MILLRACE_STATE: '' }, 'MILLRACE_STATE'],
  [{ MILLRACE_TEMPORAL_ADDRESS: 'temporal' }, 'MILLRACE_TEMPORAL_ADDRESS=temporal'],
  [{ MILLRACE_CONSOLE_PORT: '99999' }, 'MILLRACE_CONSOLE_PORT=99999'],
])('setting %j is refused by name', (env, words) => {
  expect(() => controlSettings({ MILLRACE_STATE: 'memory:', ...env })).toThrow(words);
});
