import { FaultyDfs } from '@millrace/dfs/testing';
import { describe, expect, it } from 'vitest';
import type { FileRef } from '../file-store.ts';
import { eraseJob } from '../retention/erase.ts';
import { retire } from '../retention/retire.ts';
import { ForkedJobs } from '../testing/forked-jobs.ts';
import { type Fork, forkCheckpoint } from './fork-checkpoint.ts';
import { settleOrigins } from './settle-origins.ts';
import { sweepForkPins } from './sweep-fork-pins.ts';

/** Forks the newest checkpoint of `parent` and registers it as the child's. */
async function fork(jobs: ForkedJobs, parent: string, child: string, claim = `claim-${child}`): Promise<Fork> {
  const holders = jobs.records.get(parent)?.checkpoints.at(-1) ?? [];
  const made = await forkCheckpoint(jobs.memory, jobs, { parent, child, claim, holders, generation: 1 });
  jobs.records.set(child, { claim, checkpoints: [made.holders] });
  return made;
}

/** Drops all but the newest checkpoint of a job, as its retention would. */
async function retain(jobs: ForkedJobs, job: string): Promise<void> {
  const record = jobs.records.get(job);
  if (record === undefined) return;
  const dropped = record.checkpoints.splice(0, record.checkpoints.length - 1).flat();
  const storage = jobs.open(job);
  await retire(storage, storage.reaper, { dropped, live: record.checkpoints.flat() });
  await settle(jobs, job);
}

function settle(jobs: ForkedJobs, job: string): Promise<void> {
  const storage = jobs.open(job);
  const record = jobs.records.get(job);
  return settleOrigins(storage, storage.reaper, jobs, {
    claim: record?.claim,
    live: record?.checkpoints.flat() ?? [],
  });
}

function erase(jobs: ForkedJobs, job: string) {
  const record = jobs.records.get(job);
  if (record !== undefined) record.checkpoints = [];
  const storage = jobs.open(job);
  return eraseJob(storage, storage.reaper, jobs);
}

async function readable(jobs: ForkedJobs, job: string): Promise<string[]> {
  const storage = jobs.open(job);
  const holders = jobs.records.get(job)?.checkpoints.at(-1) ?? [];
  const files = (await Promise.all(holders.map((path) => storage.holders.read(path)))).flatMap((h) => h.files);
  const bytes = await Promise.all(files.map((file) => storage.files.open(file).read(0, file.sizeBytes)));
  return bytes.map((each) => new TextDecoder().decode(each));
}

describe('a fork', () => {
  it('names the parent files as they are: no file is read or written', async () => {
    const jobs = new ForkedJobs();
    const [a, b] = [await jobs.file('p'), await jobs.file('p')];
    await jobs.checkpoint('p', 3, [a, b]);
    const before = await jobs.left('p/files/');
    const { holders, files, bytesLinked, relocate } = await fork(jobs, 'p', 'f');
    expect(holders).toEqual(['f/snapshots/3/op-0-g1']);
    expect({ files, bytesLinked }).toEqual({ files: 2, bytesLinked: a.sizeBytes + b.sizeBytes });
    expect(await jobs.left('p/files/')).toEqual(before);
    expect(await jobs.left('f/files/')).toEqual([]);
    expect(await readable(jobs, 'f')).toEqual([a.id, b.id]);
    const said = relocate({ slots: [{ table: { holders: ['p/snapshots/3/op-0-g1'] }, file: a }], other: 'x' });
    expect(said).toEqual({ slots: [{ table: { holders }, file: { ...a, home: 'p' } }], other: 'x' });
  });

  it('tells its holders where the files are that their values name', async () => {
    const jobs = new ForkedJobs();
    const a = await jobs.file('p');
    await jobs.checkpoint('p', 3, [a]);
    const { holders } = await fork(jobs, 'p', 'f');
    const holder = await jobs.open('f').holders.read(holders[0] as string);
    expect(holder.value).toEqual({ tables: [{ file: { ...a, home: 'p' }, level: 0 }] });
  });

  it('goes on when its parent drops the checkpoint and when the parent is deleted', async () => {
    const jobs = new ForkedJobs();
    const [a, b] = [await jobs.file('p'), await jobs.file('p')];
    await jobs.checkpoint('p', 3, [a]);
    await fork(jobs, 'p', 'f');
    await jobs.checkpoint('p', 4, [b]);
    await retain(jobs, 'p');
    expect(await readable(jobs, 'f')).toEqual([a.id]);
    expect(await erase(jobs, 'p')).toMatchObject({ filesRemoved: 1, filesPinned: 1, failed: 0 });
    expect(await readable(jobs, 'f')).toEqual([a.id]);
    await erase(jobs, 'f');
    expect(await jobs.left()).toEqual([]);
  });

  it('can be deleted first: the parent keeps what it has and frees it itself', async () => {
    const jobs = new ForkedJobs();
    const a = await jobs.file('p');
    await jobs.checkpoint('p', 3, [a]);
    await fork(jobs, 'p', 'f');
    await erase(jobs, 'f');
    expect(await readable(jobs, 'p')).toEqual([a.id]);
    expect(await jobs.left()).toEqual([`p/files/${a.id}`, 'p/snapshots/3/op-0-g1']);
  });

  it('never deletes a file of its parent, whatever it drops', async () => {
    const jobs = new ForkedJobs();
    const a = await jobs.file('p');
    await jobs.checkpoint('p', 3, [a]);
    await fork(jobs, 'p', 'f');
    await jobs.checkpoint('f', 4, [await jobs.file('f')]);
    await retain(jobs, 'f');
    expect(await readable(jobs, 'p')).toEqual([a.id]);
  });

  it('lets go each file of its parent when it no longer needs it, and all when it needs none', async () => {
    const jobs = new ForkedJobs();
    const [a, b, c] = [await jobs.file('p'), await jobs.file('p'), await jobs.file('p')];
    await jobs.checkpoint('p', 3, [a, b, c]);
    await fork(jobs, 'p', 'f');
    await jobs.checkpoint('p', 4, []);
    await retain(jobs, 'p');
    expect(await jobs.left('p/files/')).toHaveLength(3);
    const home = (file: FileRef): FileRef => ({ ...file, home: 'p' });
    const own = await jobs.file('f');
    await jobs.checkpoint('f', 4, [home(b), own]);
    await retain(jobs, 'f');
    expect(await jobs.left('p/files/')).toEqual([`p/files/${b.id}`]);
    expect(await readable(jobs, 'f')).toEqual([b.id, own.id]);
    await jobs.checkpoint('f', 5, [own]);
    await retain(jobs, 'f');
    expect(await jobs.left('p/files/')).toEqual([]);
    expect(await jobs.left('p/holders/')).toEqual([]);
    expect(await jobs.left('f/origins/')).toEqual([]);
  });

  it.each([
    [['p', 'f', 'g']],
    [['p', 'g', 'f']],
    [['f', 'p', 'g']],
    [['f', 'g', 'p']],
    [['g', 'p', 'f']],
    [['g', 'f', 'p']],
  ])(
    'of a fork needs neither: deleted in the order %j each that is left reads its state, and at last nothing is',
    async (order) => {
      const jobs = new ForkedJobs();
      const [a, b] = [await jobs.file('p'), await jobs.file('p')];
      await jobs.checkpoint('p', 3, [a, b]);
      await fork(jobs, 'p', 'f');
      const own = await jobs.file('f');
      await jobs.checkpoint('f', 4, [{ ...b, home: 'p' }, own]);
      await retain(jobs, 'f');
      await fork(jobs, 'f', 'g');
      const state: Record<string, string[]> = { p: [a.id, b.id], f: [b.id, own.id], g: [b.id, own.id] };
      const left = new Set(order);
      const wrong: string[] = [];
      for (const job of order) {
        await erase(jobs, job);
        left.delete(job);
        for (const other of left) {
          const found = await readable(jobs, other);
          if (found.join() !== state[other]?.join()) wrong.push(`after ${job}, ${other} reads ${found.join()}`);
        }
      }
      expect(wrong).toEqual([]);
      expect(await jobs.left()).toEqual([]);
    },
  );

  it('comes too late when the parent has given up the checkpoint, and leaves nothing beyond the sweep', async () => {
    const jobs = new ForkedJobs();
    const [a, b] = [await jobs.file('p'), await jobs.file('p')];
    const holders = await jobs.checkpoint('p', 3, [a]);
    await jobs.checkpoint('p', 4, [b]);
    jobs.records.get('p')?.checkpoints.shift();
    const late = forkCheckpoint(jobs.memory, jobs, { parent: 'p', child: 'f', claim: 'c', holders, generation: 1 });
    await expect(late).rejects.toMatchObject({ code: 'ufs-checkpoint-gone' });
    const storage = jobs.open('p');
    await retire(storage, storage.reaper, { dropped: holders, live: await jobs.liveHolders('p') });
    expect(await jobs.left('p/files/')).toHaveLength(2);
    const sweep = (nowMs: number) => sweepForkPins(storage, storage.reaper, jobs, { graceMs: 1000, nowMs });
    expect(await sweep(jobs.clock.nowMs() + 999)).toBe(0);
    expect(await sweep(jobs.clock.nowMs() + 1000)).toBe(1);
    expect(await jobs.left('p/')).toEqual([`p/files/${b.id}`, 'p/snapshots/4/op-0-g1']);
  });

  it('that dies at any of its requests leaves nothing beyond the sweeps', async () => {
    const leaked: string[] = [];
    let requests = 0;
    for (let crashAt = 1, crashed = true; crashed; crashAt++) {
      const jobs = new ForkedJobs();
      const holders = await jobs.checkpoint('p', 3, [await jobs.file('p')]);
      const before = await jobs.left();
      const dfs = new FaultyDfs(jobs.memory);
      dfs.crashAt(crashAt, crashAt % 2 === 0 ? 'before' : 'after');
      const request = { parent: 'p', child: 'f', claim: 'c', holders, generation: 1 };
      await forkCheckpoint(dfs, jobs, request).catch(() => undefined);
      crashed = dfs.crashed;
      requests = dfs.calls;
      const storage = jobs.open('p');
      await sweepForkPins(storage, storage.reaper, jobs, { graceMs: 0, nowMs: Number.POSITIVE_INFINITY });
      // Found by its pin, the child has a record now that says it is over.
      if (jobs.records.has('f')) await erase(jobs, 'f');
      const left = (await jobs.left()).filter((path) => !before.includes(path));
      leaked.push(...left.map((path) => `request ${crashAt}: ${path}`));
    }
    expect(leaked).toEqual([]);
    expect(requests).toBeGreaterThan(3);
  });

  it('is not swept while its child lives', async () => {
    const jobs = new ForkedJobs();
    await jobs.checkpoint('p', 3, [await jobs.file('p')]);
    await fork(jobs, 'p', 'f');
    const storage = jobs.open('p');
    const swept = await sweepForkPins(storage, storage.reaper, jobs, { graceMs: 0, nowMs: Number.POSITIVE_INFINITY });
    expect(swept).toBe(0);
    expect(await jobs.left('p/holders/')).toHaveLength(1);
  });

  it('may be repeated, and refuses another checkpoint under the same claim', async () => {
    const jobs = new ForkedJobs();
    await jobs.checkpoint('p', 3, [await jobs.file('p')]);
    await fork(jobs, 'p', 'f', 'same');
    const before = await jobs.left();
    await fork(jobs, 'p', 'f', 'same');
    expect(await jobs.left()).toEqual(before);
    await jobs.checkpoint('p', 4, [await jobs.file('p')]);
    await expect(fork(jobs, 'p', 'f', 'same')).rejects.toMatchObject({ code: 'ufs-holder-taken' });
  });

  it('of a job that lives under another id again finds its own files at home', async () => {
    const jobs = new ForkedJobs();
    const a = await jobs.file('p');
    await jobs.checkpoint('p', 3, [a]);
    await fork(jobs, 'p', 'f');
    await erase(jobs, 'p');
    jobs.records.delete('p');
    await fork(jobs, 'f', 'p', 'again');
    const holder = await jobs.open('p').holders.read('p/snapshots/3/op-0-g1');
    expect(holder.files).toEqual([a]);
    await erase(jobs, 'f');
    expect(await readable(jobs, 'p')).toEqual([a.id]);
  });
});
