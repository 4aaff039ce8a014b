import { MemoryDfs } from '@millrace/dfs';
import { FaultyDfs } from '@millrace/dfs/testing';
import { MillraceError, SeededRandom } from '@millrace/kernel';
import { drive, ManualClock } from '@millrace/kernel/testing';
import type { CheckpointContents, JobInput, JobSettings, Json } from '@millrace/proto/control';
import { noTelemetry } from '@millrace/telemetry';
import { type FileRef, openJobStorage } from '@millrace/ufs';
import { beforeEach, expect, test } from 'vitest';
import { claimed, registered, roundBegun } from '../record/transitions.ts';
import { UfsControlStorage } from '../storage/ufs-control-storage.ts';
import type { RoundStep } from './contract.ts';
import { noFailPoints } from './fail-points.ts';
import { Operations } from './operations.ts';
import type { Steering } from './steering.ts';

const hourMs = 3_600_000;
const scope = { signal: new AbortController().signal, parent: undefined };
const settings = (id: string): JobSettings => ({
  id,
  job: 'flights',
  parallelism: 1,
  maxParallelism: 128,
  checkpointIntervalMs: 1000,
  options: { rows: 5 },
  from: 'latest',
  checkpointsRetained: 1,
  failuresMax: 3,
  roundTimeoutMs: 10_000,
});

/** Workflows of jobs as a test has them. */
class FakeSteering implements Steering {
  readonly running = new Set<string>();
  readonly started: JobInput[] = [];
  readonly unscheduled: string[] = [];
  async find(id: string): Promise<'running' | 'over' | 'unknown'> {
    return this.running.has(id) ? 'running' : 'unknown';
  }
  async cancel(id: string): Promise<void> {
    this.running.delete(id);
  }
  async ended(): Promise<void> {
    // Ended by `cancel`.
  }
  async start(input: JobInput): Promise<void> {
    this.started.push(input);
  }
  async unscheduleCleanup(id: string): Promise<void> {
    this.unscheduled.push(id);
  }
  async scheduleCleanup(): Promise<void> {
    // No schedules here.
  }
  status(): never {
    throw new MillraceError('unexpected', 'nobody asks');
  }
  update(): never {
    throw new MillraceError('unexpected', 'nobody asks');
  }
}

let clock: ManualClock;
let dfs: MemoryDfs;
let storage: UfsControlStorage;
let steering: FakeSteering;
let operations: Operations;

beforeEach(async () => {
  clock = new ManualClock(1_700_000_000_000);
  dfs = new MemoryDfs(clock);
  storage = new UfsControlStorage({ dfs, clock, random: new SeededRandom(1), telemetry: noTelemetry });
  steering = new FakeSteering();
  operations = new Operations({ storage, steering, failPoint: noFailPoints, clock, activeSpan: () => undefined });
  await claim('flights');
});

async function claim(id: string, run = 'run-1'): Promise<void> {
  const previous = (await storage.readRecord(id))?.generation ?? 0;
  const input = { settings: settings(id), run, claim: `${run}-${previous}`, previous };
  await storage.claimRecord(id, input.claim, (record, generation) => claimed(record, generation, input));
}

async function write(id: string, generation: number): Promise<FileRef> {
  const random = new SeededRandom(generation * 100 + clock.nowMs());
  const writer = await openJobStorage({
    dfs,
    jobId: id,
    generation,
    clock,
    random,
    telemetry: noTelemetry,
  }).files.create();
  await writer.append(new Uint8Array(10));
  clock.advance(1);
  return await writer.seal();
}

/** A registered checkpoint of the newest generation that holds these files, with output that is still to be published. */
async function take(id: string, files: readonly FileRef[], savepoints: readonly string[] = []): Promise<number> {
  const record = await storage.readRecord(id);
  const { generation = 0, round = 0 } = record ?? {};
  const checkpoint = round + 1;
  const step: RoundStep = {
    id,
    generation,
    checkpoint,
    codeHash: 'code',
    parallelism: 1,
    maxParallelism: 128,
    runners: [],
  };
  await storage.updateRecord(step, (current) => roundBegun(current, step));
  const job = openJobStorage({
    dfs,
    jobId: id,
    generation,
    clock,
    random: new SeededRandom(7),
    telemetry: noTelemetry,
  });
  const snapshot = job.namespace.snapshotPath({ checkpoint, operator: 'count', subtask: 0, generation });
  await job.holders.put(snapshot, { files, value: { tables: files as unknown as Json }, generation });
  const path = storage.checkpointPath(id, checkpoint, generation);
  const operators = [
    { operator: 'count', subtask: 0, table: { holders: [snapshot], bytesPut: 10, bytesLinked: 0 } },
    {
      operator: 'sink',
      subtask: 0,
      list: [
        { kind: 'pending', checkpoint },
        { kind: 'position', at: 3 },
      ],
    },
  ];
  const contents: CheckpointContents = {
    version: 1,
    id,
    checkpoint,
    generation,
    parallelism: 1,
    maxParallelism: 128,
    codeHash: 'code',
    slots: [{ checkpoint, subtask: 0, ended: false, operators } as unknown as Json],
  };
  await storage.writeCheckpoint(path, contents);
  await storage.hold(contents);
  const entry = {
    checkpoint,
    generation,
    path,
    parallelism: 1,
    createdMs: 0,
    bytesPut: 10,
    bytesLinked: 0,
    last: false,
  };
  await storage.updateRecord(step, (current) => registered(current, entry, { id, retained: 1, savepoints }));
  return checkpoint;
}

async function left(prefix: string): Promise<readonly string[]> {
  const paths: string[] = [];
  for await (const { path } of dfs.list(prefix)) if (!path.includes('/record/')) paths.push(path);
  return paths.sort();
}

test.each<[string, Json | undefined, RegExp]>([
  ['nothing', undefined, /The input is empty/],
  ['null, as an empty form sends', null, /The input is empty.*\{"job":"flights","parallelism":4\}/],
  ['a list', ['flights'], /The input is a list/],
  ['a text', 'flights', /The input is a string/],
  ['no job', { parallelism: 2 }, /Field "job"/],
  ['no parallelism', { job: 'flights' }, /Field "parallelism"/],
  ['parallelism 0', { job: 'flights', parallelism: 0 }, /Field "parallelism"/],
  ['a text as parallelism', { job: 'flights', parallelism: '2' }, /Field "parallelism"/],
  ['an unknown field', { job: 'flights', parallelism: 2, paralelism: 3 }, /Unknown field "paralelism"/],
  ['an unknown job', { job: 'nosuch', parallelism: 2 }, /Field "job": there is no job "nosuch"/],
  ['a job that does not run', { job: 'flights', parallelism: 2 }, /Field "job": job "flights" does not run/],
])('a rescale with %s is refused, naming the field', async (_, input, words) => {
  const refusal = operations.check('rescale', input);
  await expect(refusal).rejects.toMatchObject({ kind: 'input', message: expect.stringMatching(words) });
});

test('a savepoint whose name is taken is refused, naming the field', async () => {
  steering.running.add('flights');
  await take('flights', [], ['noon']);
  const input = { job: 'flights', name: 'noon' };
  await expect(operations.check('savepoint', input)).rejects.toMatchObject({
    code: 'savepoint-exists',
    details: { field: 'name' },
  });
});

test('a restore starts the job as it was last, from the checkpoint that is named', async () => {
  await take('flights', [], ['noon']);
  await take('flights', []);
  expect(await operations.planRestore({ job: 'flights', from: 'noon', parallelism: 3 })).toMatchObject({
    checkpoint: 1,
    isRunning: false,
    input: {
      job: 'flights',
      id: 'flights',
      parallelism: 3,
      options: { rows: 5 },
      from: { savepoint: 'noon', claim: false },
    },
  });
  expect(await operations.planRestore({ job: 'flights' })).toMatchObject({ checkpoint: 2 });
  await expect(operations.planRestore({ job: 'flights', from: 9 })).rejects.toMatchObject({
    code: 'checkpoint-not-found',
    message: expect.stringMatching(/no checkpoint 9.*checkpoints 1, 2 and the savepoints noon/),
  });
  await expect(operations.planRestore({ job: 'flights', parallelism: 500 })).rejects.toThrow(
    /"parallelism": 500 is more/,
  );
});

test('a released savepoint is deleted with what only it held', async () => {
  const [old, kept] = [await write('flights', 1), await write('flights', 1)];
  await take('flights', [old, kept], ['noon']);
  await take('flights', [kept]);
  await operations.expire('flights');
  expect(await left('flights/files/')).toHaveLength(2);
  await operations.release('flights', 'noon');
  expect(await operations.expire('flights')).toMatchObject({ checkpointsDropped: 1, failed: 0 });
  expect(await left('flights/files/')).toEqual([`flights/files/${kept.id}`]);
});

test('a fork shares the files, takes over no output that is still to be published, and may be repeated', async () => {
  const file = await write('flights', 1);
  await take('flights', [file], ['noon']);
  const input = { job: 'flights', id: 'trial', from: 'noon', options: { rows: 9 } };
  const plan = await operations.fork(input, 'fork-1');
  expect(plan).toMatchObject({ bytesLinked: 10, input: { job: 'flights', id: 'trial', options: { rows: 9 } } });
  expect(await operations.fork(input, 'fork-1')).toEqual(plan);
  expect(await left('trial/files/')).toEqual([]);
  const record = await storage.readRecord('trial');
  const contents = await storage.readCheckpoint(record?.base?.path ?? '');
  const [slot] = contents.slots as unknown as [{ operators: { list?: unknown[]; table?: { holders: string[] } }[] }];
  expect(slot.operators[0]?.table?.holders).toEqual(['trial/snapshots/1/count-0-g1']);
  expect(slot.operators[1]?.list).toEqual([{ kind: 'position', at: 3 }]);
  await claim('trial');
  expect(await storage.readRecord('trial')).toMatchObject({
    generation: 2,
    fork: { parent: 'flights', checkpoint: 1 },
  });
  await expect(operations.fork(input, 'fork-2')).rejects.toMatchObject({ code: 'job-exists' });
  await expect(operations.fork({ ...input, id: 'flights' }, 'fork-3')).rejects.toMatchObject({ code: 'job-exists' });
});

test('a fork that was held up until the sweep took it for given up does not come to be', async () => {
  await take('flights', [await write('flights', 1)], ['noon']);
  const held = new FaultyDfs(dfs);
  const stall = held.stallWhen(
    ({ operation, path }) => operation === 'putIfAbsent' && path.startsWith('trial/record/'),
  );
  const slow = new UfsControlStorage({ dfs: held, clock, random: new SeededRandom(2), telemetry: noTelemetry });
  const late = new Operations({ storage: slow, steering, failPoint: noFailPoints, clock, activeSpan: () => undefined });
  const end = late.fork({ job: 'flights', id: 'trial', from: 'noon' }, 'fork-1').catch((error: unknown) => error);
  await stall.reached;
  clock.advance(2 * hourMs);
  await storage.sweep('flights', hourMs);
  stall.release();
  expect(await drive<unknown>(clock, end)).toMatchObject({ code: 'job-exists' });
  expect(await storage.readRecord('trial')).toMatchObject({ deleted: true, checkpoints: [] });
});

test('a fork outlives its deleted parent; deleting both frees everything', async () => {
  const [shared, own] = [await write('flights', 1), await write('flights', 1)];
  await take('flights', [shared], ['noon']);
  await take('flights', [own]);
  await operations.fork({ job: 'flights', id: 'trial', from: 'noon' }, 'fork-1');
  await operations.markDeleted({ id: 'flights', claim: 'd1', savepoints: true });
  expect(await operations.erase('flights')).toMatchObject({ filesRemoved: 1, filesPinned: 1 });
  expect(steering.unscheduled).toEqual(['flights']);
  expect(await left('flights/files/')).toEqual([`flights/files/${shared.id}`]);
  clock.advance(2 * hourMs);
  await operations.sweep('trial', hourMs);
  expect(await left('flights/files/')).toHaveLength(1);
  await operations.markDeleted({ id: 'trial', claim: 'd2', savepoints: false });
  await operations.erase('trial');
  expect(await left('')).toEqual([]);
});

test('deleting refuses a job that runs, and one with savepoints', async () => {
  await take('flights', [], ['noon']);
  const wanted = { id: 'flights', claim: 'd1', savepoints: false };
  await expect(operations.markDeleted(wanted)).rejects.toThrow(/has the savepoints noon/);
  steering.running.add('flights');
  await expect(operations.markDeleted({ ...wanted, savepoints: true })).rejects.toThrow(/is running/);
});

test('a clean-up deletes what a dead attempt left, past the grace period, and tells its size', async () => {
  const [orphan, live] = [await write('flights', 1), await write('flights', 1)];
  await take('flights', [live]);
  await claim('flights');
  expect(await operations.sweep('flights', hourMs)).toMatchObject({ filesRemoved: 0, bytesFreed: 0 });
  clock.advance(2 * hourMs);
  expect(await operations.sweep('flights', hourMs)).toMatchObject({ filesRemoved: 1, bytesFreed: 10, failed: 0 });
  expect(await left('flights/files/')).toEqual([`flights/files/${live.id}`]);
  expect(await left('flights/files/')).not.toContain(`flights/files/${orphan.id}`);
});

test('a job that runs is cancelled before it is restored', async () => {
  await take('flights', []);
  steering.running.add('flights');
  expect((await operations.planRestore({ job: 'flights' })).isRunning).toBe(true);
  await operations.endJob('flights', scope);
  expect(await steering.find('flights')).toBe('unknown');
});
