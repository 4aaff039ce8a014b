import type { CheckpointMode, JobRecord, Json } from '@millrace/proto/control';
import { expect, test } from 'vitest';
import { jobSettings, parseJobInput } from './job-input.ts';

const record: JobRecord = {
  id: 'flights',
  job: 'flights',
  generation: 3,
  round: 9,
  checkpoints: [],
  maxParallelism: 64,
  finished: false,
  run: 'run',
  runStart: 0,
  closedRound: 0,
  dropping: [],
};

test('the name of a job is enough', () => {
  expect(jobSettings(parseJobInput({ job: 'flights' }), undefined)).toEqual({
    id: 'flights',
    job: 'flights',
    parallelism: 1,
    maxParallelism: 128,
    checkpointIntervalMs: 10_000,
    options: {},
    from: 'latest',
    allowDroppedState: false,
    checkpointsRetained: 3,
    cleanupIntervalMs: 3_600_000,
    failuresMax: 10,
    roundTimeoutMs: 600_000,
  });
});

test.each<[Json, CheckpointMode | undefined, number | undefined]>([
  [{ job: 'a' }, undefined, undefined],
  [{ job: 'a', checkpointMode: 'unaligned' }, undefined, 0],
  [{ job: 'a', checkpointMode: 'aligned-timeout' }, undefined, 1000],
  [{ job: 'a', checkpointMode: 'aligned-timeout', alignTimeoutMs: 50 }, undefined, 50],
  [{ job: 'a' }, 'unaligned', 0],
  [{ job: 'a', alignTimeoutMs: 50 }, 'aligned-timeout', 50],
  [{ job: 'a', checkpointMode: 'aligned' }, 'unaligned', undefined],
])('the checkpoint mode of %j where the cluster says %s: barriers overtake after %s ms', (input, cluster, waitMs) => {
  expect(jobSettings(parseJobInput(input), undefined, cluster).overtakeAfterMs).toBe(waitMs);
});

test('a time limit for alignment in a mode that has none is refused', () => {
  const input = parseJobInput({ job: 'a', checkpointMode: 'unaligned', alignTimeoutMs: 5 });
  expect(() => jobSettings(input, undefined)).toThrow('needs "checkpointMode": "aligned-timeout"');
});

test('state is dropped only when the input says so', () => {
  const said = (input: Json): unknown => jobSettings(parseJobInput(input), undefined).allowDroppedState;
  expect([said({ job: 'a', allowDroppedState: true }), said({ job: 'a', allowDroppedState: false })]).toEqual([
    true,
    false,
  ]);
});

test.each<[Json | undefined, string]>([
  [undefined, 'The input is empty'],
  [null, 'The input is empty'],
  ['flights', 'The input is a string'],
  [['flights'], 'The input is a list'],
  [{}, 'Field "job"'],
  [{ job: '' }, 'Field "job"'],
  [{ job: '../x' }, 'Field "job"'],
  [{ job: 'a', parallelism: 0 }, 'Field "parallelism"'],
  [{ job: 'a', parallelism: '2' }, 'Field "parallelism"'],
  [{ job: 'a', parallelizm: 2 }, 'Unknown field "parallelizm". Fields are job, id, parallelism'],
  [{ job: 'a', options: 7 }, 'Field "options"'],
  [{ job: 'a', from: 'yesterday' }, 'Field "from"'],
  [{ job: 'a', allowDroppedState: 'yes' }, 'Field "allowDroppedState"'],
  [{ job: 'a', checkpointMode: 'exactly-once' }, 'Field "checkpointMode"'],
  [{ job: 'a', checkpointIntervalMs: 1 }, 'Field "checkpointIntervalMs"'],
])('input %j is refused in words', (input, words) => {
  expect(() => parseJobInput(input)).toThrow(words);
});

test('parallelism above the maximum is refused', () => {
  expect(() => jobSettings(parseJobInput({ job: 'a', parallelism: 3, maxParallelism: 2 }), undefined)).toThrow(
    '"parallelism": 3',
  );
});

test('max parallelism stays what the state was made with', () => {
  expect(jobSettings(parseJobInput({ job: 'flights' }), record).maxParallelism).toBe(64);
  expect(() => jobSettings(parseJobInput({ job: 'flights', maxParallelism: 128 }), record)).toThrow('was made with 64');
  const anew = parseJobInput({ job: 'flights', maxParallelism: 128, from: 'empty' });
  expect(jobSettings(anew, record).maxParallelism).toBe(128);
});

test('state of another job is not taken over', () => {
  expect(() => jobSettings(parseJobInput({ job: 'trains', id: 'flights' }), record)).toThrow(
    'belongs to job "flights"',
  );
});
