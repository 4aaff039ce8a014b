import type { CheckpointEntry, JobRecord, JobSettings, StartFrom } from '@millrace/proto/control';
import { expect, test } from 'vitest';
import {
  claimed,
  deleted,
  findStart,
  liveCheckpoints,
  newestCheckpoint,
  registered,
  roundBegun,
  savepointReleased,
} from './transitions.ts';

const settings: JobSettings = {
  id: 'j',
  job: 'j',
  parallelism: 1,
  maxParallelism: 128,
  checkpointIntervalMs: 1000,
  options: {},
  from: 'latest',
  checkpointsRetained: 1,
  failuresMax: 1,
  roundTimeoutMs: 1000,
};
const step = (checkpoint: number, generation: number) => ({
  id: 'j',
  generation,
  checkpoint,
  codeHash: '',
  parallelism: 1,
  maxParallelism: 128,
  runners: [],
});

function claim(record: JobRecord | undefined, run: string, from: StartFrom = 'latest'): JobRecord {
  const generation = (record?.generation ?? 0) + 1;
  return claimed(record, generation, { settings: { ...settings, from }, run, claim: run, previous: null });
}

function take(record: JobRecord, savepoints: readonly string[] = []): JobRecord {
  const { generation } = record;
  const checkpoint = record.round + 1;
  const entry: CheckpointEntry = {
    checkpoint,
    generation,
    path: `j/checkpoints/${checkpoint}-g${generation}.json`,
    parallelism: 1,
    createdMs: 0,
    bytesPut: 0,
    bytesLinked: 0,
    last: false,
  };
  return registered(roundBegun(record, step(checkpoint, generation)), entry, { id: 'j', retained: 1, savepoints });
}

const numbers = (entries: readonly CheckpointEntry[] = []): number[] => entries.map((entry) => entry.checkpoint);

test('a savepoint outlives the retention of checkpoints, until it is released', () => {
  const saved = take(take(take(claim(undefined, 'a')), ['noon']));
  expect(numbers(saved.checkpoints)).toEqual([3]);
  expect(numbers(saved.dropping)).toEqual([1]);
  expect(numbers(liveCheckpoints(saved))).toEqual([2, 3]);
  const released = savepointReleased(saved, 'noon');
  expect(numbers(liveCheckpoints(released))).toEqual([3]);
  expect(numbers(released.dropping)).toEqual([1, 2]);
  expect(savepointReleased(released, 'noon')).toBe(released);
});

test('a savepoint that is a checkpoint still is not given up when it is released', () => {
  const saved = take(claim(undefined, 'a'), ['noon']);
  expect(savepointReleased(saved, 'noon').dropping).toEqual([]);
});

test('a savepoint without a name is named by its checkpoint, and a name that is taken gets the number behind it', () => {
  const saved = take(take(claim(undefined, 'a'), ['', 'x']), ['x']);
  expect(saved.savepoints?.map((entry) => entry.name)).toEqual(['savepoint-1', 'x', 'x-2']);
});

test('a restored savepoint stays the users: the job starts from it until it has a checkpoint of its own', () => {
  const before = take(take(claim(undefined, 'a'), ['noon']));
  const restored = claim(before, 'b', { savepoint: 'noon' });
  expect(newestCheckpoint(restored)?.checkpoint).toBe(1);
  // Another attempt of the same run, and a failure before the first checkpoint.
  const again = claim(restored, 'b', { savepoint: 'noon' });
  expect(newestCheckpoint(again)?.checkpoint).toBe(1);
  const after = take(again);
  expect(newestCheckpoint(after)?.checkpoint).toBe(3);
  expect(after.base).toBeUndefined();
  expect(numbers(after.savepoints)).toEqual([1]);
  expect(numbers(after.dropping)).toEqual([2]);
});

test('a claimed savepoint is dropped once the job has a checkpoint of its own, and not before', () => {
  const before = take(take(claim(undefined, 'a'), ['noon']));
  const restored = claim(before, 'b', { savepoint: 'noon', claim: true });
  expect(restored.savepoints).toEqual([]);
  expect(numbers(liveCheckpoints(restored))).toEqual([1, 2]);
  expect(numbers(take(restored).dropping)).toEqual([2, 1]);
});

test('a savepoint that is released while the job still has to start from it stays until it need not', () => {
  const restored = claim(take(take(claim(undefined, 'a'), ['noon'])), 'b', { savepoint: 'noon' });
  const released = savepointReleased(restored, 'noon');
  expect(numbers(liveCheckpoints(released))).toEqual([1, 2]);
  expect(numbers(take(released).dropping)).toEqual([2, 1]);
});

test('what a job cannot start from is refused with what it has', () => {
  const record = take(claim(undefined, 'a'), ['noon']);
  expect(findStart(record, { checkpoint: 9 })).toBeUndefined();
  expect(() => claim(record, 'b', { savepoint: 'midnight' })).toThrow(/no checkpoint savepoint "midnight".*1.*noon/);
});

test('starting empty keeps what belongs to the user', () => {
  const empty = claim(take(take(claim(undefined, 'a'), ['noon'])), 'b', 'empty');
  expect(numbers(liveCheckpoints(empty))).toEqual([1]);
  expect(newestCheckpoint(empty)).toBeUndefined();
});

test('a deleted job has nothing that lives, and what still runs of it is refused', () => {
  const running = take(claim(undefined, 'a'), ['noon']);
  const gone = deleted(running, 2);
  expect(liveCheckpoints(gone)).toEqual([]);
  expect(() => roundBegun(gone, step(2, 1))).toThrow(/overtaken by generation 2/);
  expect(newestCheckpoint(claim(gone, 'b'))).toBeUndefined();
});
