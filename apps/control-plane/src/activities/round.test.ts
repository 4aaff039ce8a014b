import { MemoryDfs } from '@millrace/dfs';
import { MillraceError, SeededRandom, systemClock } from '@millrace/kernel';
import type { JobRecord, JobSettings } from '@millrace/proto/control';
import { noTelemetry } from '@millrace/telemetry';
import { Holders, JobNamespace } from '@millrace/ufs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { claimed } from '../record/transitions.ts';
import { RetentionQueue } from '../storage/retention-queue.ts';
import { UfsControlStorage } from '../storage/ufs-control-storage.ts';
import { type RunnerStub, startRunnerStub } from '../testing/runner-stub.ts';
import type { RoundStep } from './contract.ts';
import { type FailPoint, type FailPointName, failPointNames, noFailPoints } from './fail-points.ts';
import { Round } from './round.ts';
import { RunnerClients } from './runner-clients.ts';

const id = 'flights';
const scope = { signal: new AbortController().signal, parent: undefined };
const settings: JobSettings = {
  id,
  job: id,
  parallelism: 2,
  maxParallelism: 128,
  checkpointIntervalMs: 1000,
  options: {},
  from: 'latest',
  checkpointsRetained: 2,
  failuresMax: 3,
  roundTimeoutMs: 10_000,
};

let dfs: MemoryDfs;
let storage: UfsControlStorage;
let stubs: RunnerStub[];
let runners: RunnerClients;
let retention: RetentionQueue;

beforeEach(async () => {
  dfs = new MemoryDfs(systemClock);
  storage = new UfsControlStorage({ dfs, clock: systemClock, random: new SeededRandom(1), telemetry: noTelemetry });
  stubs = await Promise.all([startRunnerStub([0]), startRunnerStub([1])]);
  runners = new RunnerClients();
  retention = new RetentionQueue({ storage, clock: systemClock, telemetry: noTelemetry });
  await claim('first');
});

afterEach(() => {
  runners.close();
  for (const stub of stubs) stub.close();
});

async function claim(claimant: string): Promise<JobRecord> {
  const previous = (await storage.readRecord(id))?.generation ?? 0;
  const input = { settings, run: 'run-1', claim: claimant, previous };
  return await storage.claimRecord(id, claimant, (record, generation) => claimed(record, generation, input));
}

function round(failPoint: FailPoint = noFailPoints): Round {
  return new Round({ storage, runners, failPoint, clock: systemClock, telemetry: noTelemetry });
}

function step(checkpoint: number, generation = 1): RoundStep {
  return {
    id,
    generation,
    checkpoint,
    codeHash: 'code',
    parallelism: 2,
    maxParallelism: 128,
    runners: stubs.map((stub, i) => ({ runnerId: `r${i}`, address: stub.address })),
  };
}

async function whole(checkpoint: number, how: Round = round(), generation = 1): Promise<void> {
  const s = step(checkpoint, generation);
  await how.barrier(s, scope);
  const drained = await how.drain(s, scope);
  await how.link({ step: s, drained }, scope);
  await how.register({ step: s, drained, checkpointsRetained: settings.checkpointsRetained }, scope);
  retention.request(s);
  await retention.idle();
}

async function paths(): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { path } of dfs.list('')) if (!path.includes('/record/')) found.push(path);
  return found;
}

/** A table's snapshot as a store writes it: a holder that names these files, which exist. */
async function snapshot(checkpoint: number, subtask: number, files: readonly string[]): Promise<string> {
  const namespace = new JobNamespace(id);
  const path = namespace.snapshotPath({ checkpoint, operator: 'count', subtask, generation: 1 });
  for (const file of files) await dfs.put(namespace.filePath(file), new Uint8Array([1]));
  await new Holders(dfs).put(path, {
    generation: 1,
    files: files.map((file) => ({ id: file, sizeBytes: 1, crc32: 0 })),
    value: null,
  });
  return path;
}

test('a round registers its checkpoint, with what every subtask gave, and tells the sinks', async () => {
  await whole(1);
  const record = await storage.readRecord(id);
  expect(record).toMatchObject({
    generation: 1,
    round: 1,
    checkpoints: [{ checkpoint: 1, path: 'flights/checkpoints/1-g1.json', bytesPut: 20, bytesLinked: 10, last: false }],
  });
  expect(stubs[0]?.calls).toEqual(['barrier 1', 'drain 1', 'complete 1']);
  const contents = await storage.readCheckpoint('flights/checkpoints/1-g1.json');
  expect(contents.slots).toMatchObject([{ subtask: 0 }, { subtask: 1 }]);
});

test('a round is the last only when every subtask has ended', async () => {
  (stubs[0] as RunnerStub).ended = true;
  await whole(1);
  expect((await storage.readRecord(id))?.checkpoints[0]?.last).toBe(false);
  (stubs[1] as RunnerStub).ended = true;
  await whole(2);
  expect((await storage.readRecord(id))?.checkpoints[1]?.last).toBe(true);
  expect(stubs[1]?.calls.at(-1)).toBe('complete 2 last');
});

const inRound = failPointNames.filter((name) => /^(barrier|drain|link|register)/.test(name));
test.each(inRound)('a control plane that dies at %s and repeats the step changes nothing', async (name) => {
  const s = step(1);
  const steps: readonly ((how: Round) => Promise<unknown>)[] = [
    (how) => how.barrier(s, scope),
    (how) => how.drain(s, scope),
    async (how) => how.link({ step: s, drained: await how.drain(s, scope) }, scope),
    async (how) => how.register({ step: s, drained: await how.drain(s, scope), checkpointsRetained: 2 }, scope),
  ];
  let died = 0;
  for (const run of steps) {
    const first = await Promise.allSettled([run(round(dieAt(name)))]);
    if (first[0].status === 'fulfilled') continue;
    died += 1;
    await run(round());
  }
  expect(died).toBeGreaterThan(0);
  const record = await storage.readRecord(id);
  expect(record).toMatchObject({ round: 1, checkpoints: [{ checkpoint: 1, generation: 1 }] });
  expect(record?.checkpoints).toHaveLength(1);
  expect(await paths()).toEqual(['flights/checkpoints/1-g1.json', 'flights/holders/checkpoint-1-g1']);
});

function dieAt(name: FailPointName): FailPoint {
  return async (reached) => {
    if (reached === name) throw new Error('died');
  };
}

test('a zombie of an older generation can neither begin nor register a round', async () => {
  const zombie = step(1);
  await round().barrier(zombie, scope);
  const drained = await round().drain(zombie, scope);
  await claim('second');
  await expect(round().register({ step: zombie, drained, checkpointsRetained: 2 }, scope)).rejects.toMatchObject({
    kind: 'fenced',
  });
  await expect(round().barrier(step(2), scope)).rejects.toMatchObject({ kind: 'fenced' });
  expect((await storage.readRecord(id))?.checkpoints).toEqual([]);
});

test('a round that was aborted can never register, and leaves nothing', async () => {
  const s = step(1);
  await round().barrier(s, scope);
  const drained = await round().drain(s, scope);
  await round().link({ step: s, drained }, scope);
  expect(await round().abort(s, scope)).toBeNull();
  expect(await paths()).toEqual([]);
  await expect(round().register({ step: s, drained, checkpointsRetained: 2 }, scope)).rejects.toMatchObject({
    code: 'round-closed',
  });
  expect(stubs[1]?.calls.at(-1)).toBe('abort 1');
  await whole(2);
  expect((await storage.readRecord(id))?.checkpoints.map((c) => c.checkpoint)).toEqual([2]);
});

test('aborting a round that had registered after all finds its checkpoint and tells the sinks', async () => {
  await expect(whole(1, round(dieAt('register.after-commit')))).rejects.toThrow('died');
  expect(await round().abort(step(1), scope)).toMatchObject({ checkpoint: 1, path: 'flights/checkpoints/1-g1.json' });
  expect(stubs[0]?.calls.at(-1)).toBe('complete 1');
  expect((await storage.readRecord(id))?.checkpoints).toHaveLength(1);
});

test('a checkpoint that names a snapshot which does not exist is refused', async () => {
  (stubs[0] as RunnerStub).holders = () => ['flights/snapshots/1/count-0-g1'];
  await expect(whole(1)).rejects.toMatchObject({ code: 'checkpoint-incomplete' });
  expect((await storage.readRecord(id))?.checkpoints).toEqual([]);
});

test('a checkpoint without the part of one subtask is refused', async () => {
  const half = { ...step(1), runners: step(1).runners.slice(0, 1) };
  await round().barrier(half, scope);
  await expect(round().drain(half, scope)).rejects.toMatchObject({ code: 'checkpoint-incomplete' });
});

test('a runner that refuses the attempt is reported as lost, not as a fenced job', async () => {
  (stubs[1] as RunnerStub).refuse = new MillraceError('attempt-fenced', 'not here');
  await expect(round().barrier(step(1), scope)).rejects.toMatchObject({
    code: 'runner-lost',
    details: { runnerId: 'r1' },
  });
});

test('the last output is published when one runner missed the end of the job and the others had ended', async () => {
  const [ends, misses] = stubs as [RunnerStub, RunnerStub];
  for (const stub of stubs) stub.ended = true;
  const s = step(1);
  await round().barrier(s, scope);
  const drained = await round().drain(s, scope);
  const register = () => round().register({ step: s, drained, checkpointsRetained: 2 }, scope);
  misses.refuse = new MillraceError('rpc-unavailable', 'blip');
  await expect(register()).rejects.toMatchObject({ code: 'rpc-unavailable' });
  expect(ends.calls.at(-1)).toBe('complete 1 last');
  ends.refuse = new MillraceError('attempt-unknown', 'ended well');
  await expect(register()).rejects.toMatchObject({ code: 'rpc-unavailable' });
  await expect(round().abort(s, scope)).rejects.toMatchObject({ code: 'rpc-unavailable' });
  misses.refuse = undefined;
  await register();
  expect(misses.calls.at(-1)).toBe('complete 1 last');
});

test('a job ends although a runner that had ended goes away while another one has still to be told', async () => {
  const [ends, misses] = stubs as [RunnerStub, RunnerStub];
  for (const stub of stubs) stub.ended = true;
  const s = step(1);
  await round().barrier(s, scope);
  const drained = await round().drain(s, scope);
  const tries = { ...scope, done: new Set<string>() };
  const register = () => round().register({ step: s, drained, checkpointsRetained: 2 }, tries);
  misses.refuse = new MillraceError('rpc-unavailable', 'blip');
  await expect(register()).rejects.toMatchObject({ code: 'rpc-unavailable' });
  ends.close();
  misses.refuse = undefined;
  await register();
  expect(misses.calls.at(-1)).toBe('complete 1 last');
});

test.each(['attempt-unknown', 'attempt-fenced', 'runner-mismatch'] as const)(
  'a runner that has nothing of the attempt any more (%s) does not hold up a committed checkpoint',
  async (code) => {
    const s = step(1);
    await round().barrier(s, scope);
    const drained = await round().drain(s, scope);
    (stubs[0] as RunnerStub).refuse = new MillraceError(code, 'gone');
    await round().register({ step: s, drained, checkpointsRetained: 2 }, scope);
    expect(stubs[1]?.calls.at(-1)).toBe('complete 1');
  },
);

test('checkpoints keep committing at once while the store refuses every deletion', async () => {
  const remove = dfs.remove.bind(dfs);
  const refused: string[] = [];
  dfs.remove = async (path) => {
    refused.push(path);
    await new Promise((resolve) => setTimeout(resolve, 20));
    throw new MillraceError('dfs-denied', 'no permission to delete');
  };
  const removalsInRegister: number[] = [];
  for (let checkpoint = 1; checkpoint <= 12; checkpoint++) {
    const s = step(checkpoint);
    await round().barrier(s, scope);
    const drained = await round().drain(s, scope);
    const before = refused.length;
    await round().register({ step: s, drained, checkpointsRetained: 1 }, scope);
    removalsInRegister.push(refused.length - before);
    retention.request(s);
    await retention.idle();
  }
  expect(removalsInRegister).toEqual(Array.from({ length: 12 }, () => 0));
  // One pass met refusals; from then on the job was left alone for a while.
  expect(refused.length).toBe(1);
  expect((await storage.readRecord(id))?.dropping).toHaveLength(11);

  dfs.remove = remove;
  retention = new RetentionQueue({ storage, clock: systemClock, telemetry: noTelemetry });
  await whole(13);
  await whole(14);
  expect((await storage.readRecord(id))?.dropping).toEqual([]);
  expect((await paths()).filter((path) => path.includes('/checkpoints/'))).toHaveLength(2);
});

test('a register that is repeated after its commit tells the sinks although deletions fail', async () => {
  await whole(1);
  await whole(2);
  dfs.remove = () => Promise.reject(new MillraceError('dfs-denied', 'no permission to delete'));
  await expect(whole(3, round(dieAt('register.after-commit')))).rejects.toThrow('died');
  expect(stubs[0]?.calls.at(-1)).toBe('drain 3');
  const s = step(3);
  const drained = { path: 'flights/checkpoints/3-g1.json', bytesPut: 20, bytesLinked: 10, last: false };
  await round().register({ step: s, drained, checkpointsRetained: 2 }, scope);
  for (const stub of stubs) expect(stub.calls.at(-1)).toBe('complete 3');
  retention.request(s);
  await retention.idle();
  expect(await storage.readRecord(id)).toMatchObject({
    checkpoints: [{ checkpoint: 2 }, { checkpoint: 3 }],
    dropping: [{ checkpoint: 1 }],
  });
});

test('a checkpoint that cannot be deleted does not keep the others from being deleted', async () => {
  const remove = dfs.remove.bind(dfs);
  dfs.remove = (path) =>
    path === 'flights/holders/checkpoint-1-g1'
      ? Promise.reject(new MillraceError('dfs-denied', 'no permission to delete'))
      : remove(path);
  for (let checkpoint = 1; checkpoint <= 8; checkpoint++) {
    await whole(checkpoint);
    retention = new RetentionQueue({ storage, clock: systemClock, telemetry: noTelemetry });
  }
  expect((await storage.readRecord(id))?.dropping.map((entry) => entry.checkpoint)).toEqual([1]);
});

test('retention deletes the files that only given-up checkpoints name, and no others', async () => {
  const stub = stubs[0] as RunnerStub;
  const files: Readonly<Record<number, readonly string[]>> = {
    1: ['a', 'b'],
    2: ['b', 'c'],
    3: ['b', 'd'],
    4: ['d'],
    5: ['d'],
  };
  for (let checkpoint = 1; checkpoint <= 5; checkpoint++) {
    const path = await snapshot(checkpoint, 0, files[checkpoint] ?? []);
    stub.holders = () => [path];
    await whole(checkpoint);
  }
  const record = await storage.readRecord(id);
  expect(record?.checkpoints.map((c) => c.checkpoint)).toEqual([4, 5]);
  const left = (await paths()).filter((path) => path.includes('/files/'));
  expect(left).toEqual(['flights/files/d']);
  expect(record?.dropping).toEqual([]);
});

test('a pin in the holders keeps the files of a checkpoint that was given up', async () => {
  const stub = stubs[0] as RunnerStub;
  const path = await snapshot(1, 0, ['pinned', 'free']);
  stub.holders = (checkpoint) => (checkpoint === 1 ? [path] : []);
  const pin = { generation: 1, files: [{ id: 'pinned', sizeBytes: 1, crc32: 0 }], value: null };
  await new Holders(dfs).put(new JobNamespace(id).holderPath('fork-other'), pin);
  for (let checkpoint = 1; checkpoint <= 4; checkpoint++) await whole(checkpoint);
  expect((await paths()).filter((p) => p.includes('/files/'))).toEqual(['flights/files/pinned']);
});

test('versions of the record do not pile up', async () => {
  for (let checkpoint = 1; checkpoint <= 40; checkpoint++) await whole(checkpoint);
  let versions = 0;
  for await (const { path } of dfs.list('flights/record/')) if (!path.includes('gc-')) versions += 1;
  expect(versions).toBeLessThan(60);
  expect((await storage.readRecord(id))?.round).toBe(40);
});
