import { MemoryDfs } from '@millrace/dfs';
import { SeededRandom } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import type { CheckpointContents, JobSettings } from '@millrace/proto/control';
import { noTelemetry } from '@millrace/telemetry';
import { type FileRef, openJobStorage } from '@millrace/ufs';
import { beforeEach, expect, test } from 'vitest';
import type { RoundStep } from '../activities/contract.ts';
import { claimed, droppingMax, finished, registered, roundBegun, roundClosed } from '../record/transitions.ts';
import { Sweeper } from './sweeper.ts';
import { UfsControlStorage } from './ufs-control-storage.ts';

const id = 'flights';
const hourMs = 3_600_000;
const settings: JobSettings = {
  id,
  job: id,
  parallelism: 1,
  maxParallelism: 128,
  checkpointIntervalMs: 1000,
  options: {},
  from: 'latest',
  checkpointsRetained: 2,
  failuresMax: 3,
  roundTimeoutMs: 10_000,
};

let clock: ManualClock;
let dfs: MemoryDfs;
let storage: UfsControlStorage;
let sweeper: Sweeper;

beforeEach(async () => {
  clock = new ManualClock(1_700_000_000_000);
  dfs = new MemoryDfs(clock);
  storage = new UfsControlStorage({ dfs, clock, random: new SeededRandom(1), telemetry: noTelemetry });
  sweeper = new Sweeper({ storage, clock, telemetry: noTelemetry });
  await claim('first');
});

async function claim(claimant: string): Promise<void> {
  const previous = (await storage.readRecord(id))?.generation ?? 0;
  const input = { settings, run: 'run-1', claim: claimant, previous };
  await storage.claimRecord(id, claimant, (record, generation) => claimed(record, generation, input));
}

function attempt(generation: number) {
  const random = new SeededRandom(generation);
  return openJobStorage({ dfs, jobId: id, generation, clock, random, telemetry: noTelemetry });
}

/** A file of an attempt's table. */
async function write(generation: number): Promise<FileRef> {
  const writer = await attempt(generation).files.create();
  await writer.append(new Uint8Array(10));
  clock.advance(1);
  return await writer.seal();
}

function step(checkpoint: number, generation: number): RoundStep {
  return { id, generation, checkpoint, codeHash: 'code', parallelism: 1, maxParallelism: 128, runners: [] };
}

/** A round up to its commit: the table's snapshot, the checkpoint's description and its holder exist. */
async function link(checkpoint: number, generation: number, files: readonly FileRef[]): Promise<string> {
  await storage.updateRecord(step(checkpoint, generation), (record) =>
    roundBegun(record, step(checkpoint, generation)),
  );
  const { namespace, holders } = attempt(generation);
  const snapshot = namespace.snapshotPath({ checkpoint, operator: 'count', subtask: 0, generation });
  await holders.put(snapshot, { generation, files: [...files], value: null });
  const path = storage.checkpointPath(id, checkpoint, generation);
  const contents: CheckpointContents = {
    ...step(checkpoint, generation),
    version: 1,
    slots: [{ subtask: 0, operators: [{ operator: 'count', subtask: 0, table: { holders: [snapshot] } }] }],
  };
  await storage.writeCheckpoint(path, contents);
  await storage.hold(contents);
  return path;
}

async function register(checkpoint: number, generation: number, files: readonly FileRef[]): Promise<void> {
  const path = await link(checkpoint, generation, files);
  const sizes = { createdMs: 0, bytesPut: 0, bytesLinked: 0, parallelism: 1, last: false };
  const entry = { checkpoint, generation, path, ...sizes };
  await storage.updateRecord({ id, generation }, (record) => registered(record, entry, { id, retained: 2 }));
}

async function abort(checkpoint: number, generation: number, files: readonly FileRef[]): Promise<void> {
  await link(checkpoint, generation, files);
  await storage.updateRecord({ id, generation }, (record) => roundClosed(record, step(checkpoint, generation)));
  await storage.discardRound(id, checkpoint, generation);
}

async function sweep(): Promise<void> {
  clock.advance(2 * hourMs);
  sweeper.request(id);
  await sweeper.idle();
}

async function left(): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for await (const { path } of dfs.list(`${id}/`)) if (!path.includes('/record/')) found.add(path.slice(id.length + 1));
  return found;
}

function paths(files: readonly FileRef[], ...others: readonly string[]): ReadonlySet<string> {
  return new Set([...files.map((file) => `files/${file.id}`), ...others]);
}

const first = ['snapshots/1/count-0-g1', 'checkpoints/1-g1.json', 'holders/checkpoint-1-g1'];

test('what a dead attempt and an aborted round left goes after the next attempt has claimed, and nothing that lives', async () => {
  const [a, b, aborted, unheld] = [await write(1), await write(1), await write(1), await write(1)];
  await register(1, 1, [a, b]);
  await abort(2, 1, [b, aborted]);
  // The attempt dies amid a round: all is written, nothing registered.
  const dying = await write(1);
  await link(3, 1, [a, dying]);
  await claim('second');
  sweeper.request(id);
  await sweeper.idle();
  expect(await left()).toEqual(
    paths(
      [a, b, aborted, unheld, dying],
      ...first,
      'snapshots/2/count-0-g1',
      'snapshots/3/count-0-g1',
      'checkpoints/3-g1.json',
      'holders/checkpoint-3-g1',
    ),
  );
  // The new attempt has a file in use that no snapshot has named yet.
  const inUse = await write(2);
  await sweep();
  expect(await left()).toEqual(paths([a, b, inUse], ...first));
});

test('files of an aborted round go while its attempt runs on, once a later checkpoint does without them', async () => {
  const [a, compacted, b] = [await write(1), await write(1), await write(1)];
  await register(1, 1, [a]);
  await abort(2, 1, [a, compacted, b]);
  await sweep();
  expect(await left()).toContain(`files/${compacted.id}`);
  await register(3, 1, [a, b]);
  await sweep();
  const third = ['snapshots/3/count-0-g1', 'checkpoints/3-g1.json', 'holders/checkpoint-3-g1'];
  expect(await left()).toEqual(paths([a, b], ...first, ...third));
});

test('what the record gave up and no longer lists is swept while the attempt runs on', async () => {
  const kept = await write(1);
  const rounds = droppingMax + 5;
  const files: FileRef[] = [];
  for (let checkpoint = 1; checkpoint <= rounds; checkpoint++) {
    files.push(await write(1));
    await register(checkpoint, 1, [kept, files.at(-1) as FileRef]);
  }
  await sweep();
  const found = await left();
  const unlisted = rounds - 2 - droppingMax;
  const numbers = Array.from({ length: rounds }, (_, i) => i + 1);
  const listed = numbers.slice(unlisted);
  expect(numbers.filter((n) => found.has(`checkpoints/${n}-g1.json`))).toEqual(listed);
  expect(numbers.filter((n) => found.has(`holders/checkpoint-${n}-g1`))).toEqual(listed);
  expect(numbers.filter((n) => found.has(`files/${files[n - 1]?.id}`))).toEqual(numbers.slice(-2));
  const record = await storage.readRecord(id);
  expect(await storage.drop(id, record?.dropping ?? [], record?.checkpoints ?? [])).toHaveLength(droppingMax);
  const rest = [...(await left())];
  expect(rest.filter((path) => path.startsWith('checkpoints/'))).toHaveLength(2);
  expect(rest.filter((path) => path.startsWith('holders/'))).toHaveLength(2);
});

test('a finished job keeps exactly its checkpoints', async () => {
  const [a, unheld] = [await write(1), await write(1)];
  await register(1, 1, [a]);
  await storage.updateRecord({ id, generation: 1 }, (record) => finished(record, { id, generation: 1 }));
  expect(await left()).toContain(`files/${unheld.id}`);
  await sweep();
  expect(await left()).toEqual(paths([a], ...first));
});

test('when a snapshot of a live checkpoint is missing, neither sweep nor retention deletes anything', async () => {
  const [a, b] = [await write(1), await write(1)];
  await register(1, 1, [a]);
  await register(2, 1, [b]);
  await register(3, 1, [b]);
  await dfs.remove(`${id}/snapshots/3/count-0-g1`);
  await claim('second');
  const before = await left();
  await sweep();
  const record = await storage.readRecord(id);
  expect(record?.dropping.map((entry) => entry.checkpoint)).toEqual([1]);
  const drop = storage.drop(id, record?.dropping ?? [], record?.checkpoints ?? []);
  await expect(drop).rejects.toMatchObject({ code: 'ufs-missing' });
  expect(await left()).toEqual(before);
});

test('a job is swept once in a while however often it asks, and a failed sweep harms nobody', async () => {
  const swept: string[] = [];
  const failing = new Sweeper({
    storage: {
      sweep: (job) => {
        swept.push(job);
        return Promise.reject(new Error('the store is away'));
      },
    },
    clock,
    telemetry: noTelemetry,
    intervalMs: 1000,
  });
  for (let i = 0; i < 10; i++) {
    failing.request('x');
    failing.request('y');
    await failing.idle();
  }
  expect(swept).toEqual(['x', 'y']);
  clock.advance(1000);
  failing.request('x');
  await failing.close();
  failing.request('y');
  expect(swept).toEqual(['x', 'y', 'x']);
});
