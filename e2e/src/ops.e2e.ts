import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectExactFlights } from './support/flights-result.ts';
import { eventually, registeredRounds, TestStack } from './support/test-stack.ts';

const rows = Number(process.env.MILLRACE_ROWS ?? 60_000);

let run: TestStack;
beforeAll(async () => {
  run = await TestStack.start({ runners: 2, slots: 2 });
});
afterAll(() => run[Symbol.asyncDispose]());

async function start(id: string, parallelism: number, recordsPerSecond: number) {
  const output = run.path(`${id}-out`);
  const job = await run.client.startJob({
    job: 'flights',
    id,
    parallelism,
    checkpointIntervalMs: 1000,
    options: { output, rows, recordsPerSecond },
  });
  await eventually('a checkpoint', 60_000, async () => ((await registeredRounds(job)).length > 0 ? true : undefined));
  return { job, output };
}

test('a job under load is rescaled 2 → 4 → 1: its output is exact', async () => {
  const { job, output } = await start('scaled', 2, 5_000);
  const up = await (await run.client.rescale({ job: 'scaled', parallelism: 4 })).result();
  expect(up).toMatchObject({ id: 'scaled', from: 2, to: 4, generation: 2 });
  const down = await (await run.client.rescale({ job: 'scaled', parallelism: 1 })).result();
  expect(down).toMatchObject({ from: 4, to: 1, generation: 3 });
  console.log(`without records: up ${up.downtimeMs} ms, down ${down.downtimeMs} ms`);
  expect(await job.status()).toMatchObject({ state: 'running', parallelism: 1, failures: 0 });
  await expect(job.result()).resolves.toMatchObject({ state: 'finished', generation: 3 });
  await expectExactFlights(output, rows);
});

test('a job is stopped with a savepoint and restored at another parallelism: its output is exact', async () => {
  const { job, output } = await start('paused', 2, 8_000);
  const stopped = await (await run.client.stop({ job: 'paused', savepoint: 'noon' })).result();
  expect(stopped).toMatchObject({ id: 'paused', mode: 'suspend' });
  await expect(job.result()).resolves.toMatchObject({ state: 'stopped' });
  await expect((await run.client.rescale({ job: 'paused', parallelism: 1 })).result()).rejects.toMatchObject({
    code: 'job-not-running',
  });
  const { checkpoints } = await run.client.checkpoints('paused');
  expect(checkpoints.at(-1)).toMatchObject({ checkpoint: stopped.checkpoint, savepoints: ['noon'] });
  const restored = await (await run.client.restore({ job: 'paused', from: 'noon', parallelism: 3 })).result();
  expect(restored).toMatchObject({ id: 'paused', checkpoint: stopped.checkpoint, parallelism: 3 });
  await expect(run.client.job('paused').result()).resolves.toMatchObject({ state: 'finished' });
  await expectExactFlights(output, rows);
});

test('a fork goes on by itself when the job that it came from is deleted, and deleting both frees everything', async () => {
  const { job } = await start('parent', 2, 4_000);
  const savepoint = await (await run.client.savepoint({ job: 'parent', name: 'here' })).result();
  expect(savepoint).toMatchObject({ name: 'here' });
  const output = run.path('child-out');
  const forked = await (
    await run.client.fork({ job: 'parent', id: 'child', from: 'here', parallelism: 2, options: { output } })
  ).result();
  expect(forked).toMatchObject({ id: 'child', checkpoint: savepoint.checkpoint });
  expect(forked.bytesLinked).toBeGreaterThan(0);
  await job.cancel();
  await job.result().catch(() => undefined);
  const refused = (await run.client.deleteJob({ job: 'parent' })).result();
  await expect(refused).rejects.toMatchObject({ code: 'operation-refused', message: expect.stringContaining('here') });
  const deleted = await (await run.client.deleteJob({ job: 'parent', savepoints: true })).result();
  expect(deleted.filesRemoved + deleted.filesPinned).toBeGreaterThan(0);
  await expect(run.client.job('child').result()).resolves.toMatchObject({ state: 'finished' });
  await (await run.client.deleteJob({ job: 'child' })).result();
  expect(filesOf('parent')).toEqual([]);
  expect(filesOf('child')).toEqual([]);
});

function filesOf(id: string): readonly string[] {
  const directories = ['files', 'snapshots', 'checkpoints', 'holders'];
  return directories.flatMap((name) => {
    try {
      const path = run.path(`data/state/${id}/${name}`);
      return readdirSync(path, { recursive: true, withFileTypes: true }).flatMap((entry) =>
        entry.isFile() ? [`${id}/${name}/${entry.name}`] : [],
      );
    } catch {
      return [];
    }
  });
}
