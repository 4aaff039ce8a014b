import { Holders } from '@millrace/ufs';
import { describe, expect, test } from 'vitest';
import { type CheckpointFile, checkpointFiles } from './checkpoint-files.ts';
import { CheckpointState } from './checkpoint-state.ts';
import { surveyJob } from './job-survey.ts';
import { decodedToPlain, parseKey, toPlain } from './plain-json.ts';
import { StoredJob } from './testing/stored-job.ts';
import { verifyJob } from './verify.ts';

async function stored(): Promise<StoredJob> {
  const job = new StoredJob();
  await job.checkpoint(0, 300);
  await job.checkpoint(200, 400);
  return job;
}

async function stateAt(job: StoredJob, wanted?: string): Promise<CheckpointState> {
  const record = await job.jobs.record('shop');
  return await CheckpointState.open({ jobs: job.jobs, record, checkpoint: job.jobs.checkpoint(record, wanted) });
}

/** Every live file, by path. */
async function liveFiles(job: StoredJob): Promise<string[]> {
  const record = await job.jobs.record('shop');
  const all = await Promise.all(record.checkpoints.map((entry) => checkpointFiles(job.jobs, 'shop', entry)));
  return [...new Set(all.flat().map(({ path }) => path))].sort();
}

async function listed(job: StoredJob, prefix: string): Promise<string[]> {
  const paths: string[] = [];
  for await (const { path } of job.dfs.list(prefix)) paths.push(path);
  return paths;
}

const verify = (job: StoredJob, deep = false) => verifyJob(job.jobs, 'shop', { deep });

describe('state of a checkpoint', () => {
  test('is listed: operators, states, formats', async () => {
    const job = await stored();
    const state = await stateAt(job);
    expect(state.operators).toEqual(['counts']);
    const counts = await state.describe('counts');
    expect(counts).toMatchObject({ operator: 'counts', store: 'lsm', subtasks: 2, keyFormat: 'key' });
    expect(counts.states.map(({ name, kind }) => [name, kind])).toEqual([
      ['orders', 'reducing'],
      ['last', 'value'],
      ['byItem', 'map'],
    ]);
    await state.close();
  });

  test.each([
    ['1', 250, 1],
    ['2', 500, 2],
  ])('%s is read by key, across subtasks, as it was then', async (checkpoint, orders, at) => {
    const job = await stored();
    const state = await stateAt(job, checkpoint);
    const found: unknown[] = [];
    for await (const { state: name, mapKey, value } of state.get('counts', 'c250')) {
      found.push([name, mapKey && decodedToPlain(mapKey), decodedToPlain(value)]);
    }
    expect(found).toEqual([
      ['byItem', 'item 1', { count: at }],
      ['orders', undefined, orders],
      ['last', undefined, { at, city: 'city 0' }],
    ]);
    await state.close();
  });

  test('is read whole: each key once', async () => {
    const job = await stored();
    const state = await stateAt(job);
    const keys = new Set<unknown>();
    let entries = 0;
    for await (const { key } of state.scan('counts', { states: ['orders'] })) {
      keys.add(decodedToPlain(key));
      entries++;
    }
    expect([keys.size, entries]).toEqual([400, 400]);
    await state.close();
  });

  test('and what is not there is named with what is', async () => {
    const job = await stored();
    const state = await stateAt(job);
    await expect(state.describe('sums')).rejects.toThrow('those that have are counts');
    await expect(stateAt(job, '9')).rejects.toThrow('has no checkpoint 9; it has 1, 2');
    await expect(job.jobs.record('shoes')).rejects.toMatchObject({ code: 'job-not-found', message: /there are shop/ });
  });

  test('names its files, with level and owner', async () => {
    const job = await stored();
    const record = await job.jobs.record('shop');
    const files = await checkpointFiles(job.jobs, 'shop', job.jobs.checkpoint(record));
    expect(files.length).toBeGreaterThan(4);
    expect(files.every(({ home, generation }) => home === 'shop' && generation === 1)).toBe(true);
    expect(new Set(files.flatMap(({ parts }) => parts))).toEqual(new Set(['counts-0', 'counts-1']));
    expect(files.every(({ level, entries }) => level !== undefined && entries !== undefined)).toBe(true);
  });
});

describe('what a job keeps', () => {
  test('is told with who holds it, what would go with it, and what nothing holds', async () => {
    const job = await stored();
    const orphan = `${job.namespace.filesPrefix}000000001-0-0123456789ab0`;
    await job.dfs.put(orphan, new Uint8Array(10));
    job.clock.advance(2 * 3_600_000);
    const survey = await surveyJob(job.jobs, 'shop', { graceMs: 3_600_000 });
    expect(survey.files.filter(({ verdict }) => verdict === 'orphan').map(({ path }) => path)).toEqual([orphan]);
    const [first, second] = survey.holders;
    expect([first?.name, second?.name]).toEqual(['checkpoint 1', 'checkpoint 2']);
    const physical = survey.files.filter(({ verdict }) => verdict === 'held');
    const bytes = physical.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    const logical = (first?.logicalBytes ?? 0) + (second?.logicalBytes ?? 0);
    const exclusive = (first?.exclusiveBytes ?? 0) + (second?.exclusiveBytes ?? 0);
    const shared = physical.filter(({ holders }) => holders.length === 2);
    expect(shared.length).toBeGreaterThan(0);
    expect(logical - bytes).toBe(shared.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0));
    expect(exclusive + (logical - bytes)).toBe(bytes);
  });

  test('goes on being told of a job whose forks alone hold it', async () => {
    const job = await stored();
    await job.fork('outlet');
    for await (const { path } of job.dfs.list('shop/record/')) await job.dfs.remove(path);
    const survey = await surveyJob(job.jobs, 'shop', { graceMs: 0 });
    expect(survey.record).toBeUndefined();
    expect(survey.holders.map(({ name, kind }) => [name, kind])).toEqual([['fork outlet', 'pin']]);
    const held = survey.files.filter(({ holders }) => holders.includes('fork outlet'));
    expect(held.every(({ verdict }) => verdict === 'held')).toBe(true);
  });
});

describe('verification', () => {
  test('reads every live file and finds nothing wrong', async () => {
    const job = await stored();
    const progress: number[] = [];
    const report = await verifyJob(job.jobs, 'shop', { deep: true, onProgress: ({ files }) => progress.push(files) });
    expect(report).toMatchObject({ checkpoints: 2, holders: 4, problems: [] });
    expect(report.files).toBe((await liveFiles(job)).length);
    expect(progress.length).toBe(report.files);
    expect(report.entries).toBe(300 * 3 + 400 * 3);
  });

  test('finds a bit that has changed in any file, and says whom it affects', async () => {
    const job = await stored();
    const missed: string[] = [];
    for (const path of await liveFiles(job)) {
      const bytes = (await job.dfs.readAll(path)) as Uint8Array;
      const at = bytes.length >> 1;
      await job.dfs.put(
        path,
        bytes.map((byte, i) => (i === at ? byte ^ 4 : byte)),
      );
      const { problems } = await verify(job);
      if (problems.length !== 1 || problems[0]?.path !== path || problems[0].affects.length === 0) missed.push(path);
      await job.dfs.put(path, bytes);
    }
    expect(missed).toEqual([]);
  });

  test.each(['gone', 'cut off'])('finds a file that is %s', async (how) => {
    const job = await stored();
    const [path] = (await liveFiles(job)) as [string];
    const bytes = (await job.dfs.readAll(path)) as Uint8Array;
    await job.dfs.remove(path);
    if (how === 'cut off') await job.dfs.put(path, bytes.subarray(1));
    expect((await verify(job)).problems).toMatchObject([{ path }]);
  });

  test('finds a damaged holder, a lost description of a checkpoint and a damaged record', async () => {
    const job = await stored();
    const record = await job.jobs.record('shop');
    const [holder] = (await listed(job, 'shop/snapshots/2/')) as [string];
    await job.dfs.put(holder, ((await job.dfs.readAll(holder)) as Uint8Array).subarray(3));
    const lost = record.checkpoints[0]?.path as string;
    await job.dfs.remove(lost);
    expect((await verify(job)).problems.map(({ path }) => path)).toEqual([lost, holder]);
    const versions = await listed(job, 'shop/record/');
    await job.dfs.put(versions.at(-1) as string, Buffer.from('?'));
    expect((await verify(job)).problems.map(({ path }) => path)).toEqual([versions.at(-1)]);
  });

  test('does not mistake a checkpoint that is given up meanwhile for a loss', async () => {
    const job = await stored();
    await job.update((now) => ({ ...now, checkpoints: now.checkpoints.slice(1) }));
    job.forget();
    await job.checkpoint(0, 400);
    const [files, newer] = (await Promise.all(
      (await job.jobs.record('shop')).checkpoints.map((entry) => checkpointFiles(job.jobs, 'shop', entry)),
    )) as [CheckpointFile[], CheckpointFile[]];
    const own = files.filter(({ id }) => !newer.some((file) => file.id === id));
    expect(own).toHaveLength(files.length);
    const report = await verifyJob(job.jobs, 'shop', {
      onProgress: ({ files: done }) => {
        // The first file has been read: a retirement of the older checkpoint comes between.
        if (done === 1) for (const { path } of own) void job.dfs.remove(path);
        if (done === 1) void job.update((now) => ({ ...now, checkpoints: now.checkpoints.slice(1) }));
      },
    });
    expect(report.problems).toEqual([]);
  });

  test('of a fork reads the files where they lie, and finds a pin that is gone', async () => {
    const job = await stored();
    const [holder] = (await job.fork('outlet')) as [string];
    const { files } = await new Holders(job.dfs).read(holder);
    expect(files.every(({ home }) => home === 'shop')).toBe(true);
    const outlet = await verifyJob(job.jobs, 'outlet', { deep: true });
    expect(outlet).toMatchObject({ checkpoints: 1, holders: 2, problems: [] });
    expect(outlet.entries).toBe(400 * 3);
    for await (const { path } of job.dfs.list('shop/holders/')) await job.dfs.remove(path);
    const unpinned = await verifyJob(job.jobs, 'outlet');
    expect(unpinned.problems).toHaveLength(outlet.files);
    expect(unpinned.problems[0]?.what).toContain('no pin of outlet holds it');
  });
});

describe('keys and values as text', () => {
  test.each([
    ['JFK', 'JFK'],
    ['42', 42],
    ['"42"', '42'],
    ['{"a":1}', { a: 1 }],
    ['[1,{"$bigint":"7"}]', [1, 7n]],
    ['{"$date":"2024-01-01T00:00:00.000Z"}', new Date('2024-01-01')],
    ['{"$bytes":"AQI="}', Uint8Array.of(1, 2)],
    ['{broken', '{broken'],
  ])('%s is a key', (text, key) => {
    expect(parseKey(text)).toEqual(key);
  });

  test('what JSON does not know can be typed back in', () => {
    const value = [1n, Number.NaN, -0, new Date(0), Uint8Array.of(9), { deep: [Number.POSITIVE_INFINITY] }];
    expect(parseKey(JSON.stringify(toPlain(value)))).toEqual(value);
  });
});
