import type { CheckpointEntry, JobRecord, JobSettings } from '@millrace/proto/control';
import { expect, test } from 'vitest';
import type { ClaimInput } from '../activities/contract.ts';
import {
  claimed,
  droppingMax,
  finished,
  forgotten,
  newestCheckpoint,
  registered,
  roundBegun,
  roundClosed,
} from './transitions.ts';

const settings: JobSettings = {
  id: 'j',
  job: 'j',
  parallelism: 1,
  maxParallelism: 128,
  checkpointIntervalMs: 1000,
  options: {},
  from: 'latest',
  checkpointsRetained: 2,
  failuresMax: 1,
  roundTimeoutMs: 1000,
};
const claim = (run: string, from: 'latest' | 'empty' = 'latest', previous: number | null = null): ClaimInput => ({
  settings: { ...settings, from },
  run,
  claim: run,
  previous,
});
const entry = (checkpoint: number, generation: number): CheckpointEntry => ({
  checkpoint,
  generation,
  path: `j/checkpoints/${checkpoint}-g${generation}.json`,
  parallelism: 1,
  createdMs: 0,
  bytesPut: 0,
  bytesLinked: 0,
  last: false,
});
const at = (checkpoint: number, generation: number) => ({
  id: 'j',
  generation,
  checkpoint,
  codeHash: '',
  parallelism: 1,
  maxParallelism: 128,
  runners: [],
});

function afterOneCheckpoint(): JobRecord {
  const record = roundBegun(claimed(undefined, 1, claim('run-1')), at(1, 1));
  return registered(record, entry(1, 1), { id: 'j', retained: 2 });
}

test('a new run continues an unfinished one from its newest checkpoint', () => {
  const next = claimed(afterOneCheckpoint(), 2, claim('run-2'));
  expect(newestCheckpoint(next)?.checkpoint).toBe(1);
  expect(next.round).toBe(1);
});

test('a new run after a finished one starts empty and numbers its rounds on', () => {
  const next = claimed(finished(afterOneCheckpoint(), { id: 'j', generation: 1 }), 2, claim('run-2'));
  expect(newestCheckpoint(next)).toBeUndefined();
  expect(next).toMatchObject({ finished: false, round: 1, checkpoints: [{ checkpoint: 1 }] });
  const again = claimed(next, 3, claim('run-2', 'latest', 2));
  expect(newestCheckpoint(again)).toBeUndefined();
});

test('from empty gives up what an earlier run left, once', () => {
  const next = claimed(afterOneCheckpoint(), 2, claim('run-2', 'empty'));
  expect(next).toMatchObject({ checkpoints: [], dropping: [{ checkpoint: 1 }] });
  const own = registered(roundBegun(next, at(2, 2)), entry(2, 2), { id: 'j', retained: 2 });
  const restarted = claimed(own, 3, claim('run-2', 'empty', 2));
  expect(newestCheckpoint(restarted)?.checkpoint).toBe(2);
});

test('a run that another one took over may not claim again', () => {
  const next = claimed(afterOneCheckpoint(), 2, claim('run-2'));
  expect(() => claimed(next, 3, claim('run-1', 'latest', 1))).toThrow('was faster');
});

test('a claim of a cancelled run that wakes up late takes nothing from the run that lives', () => {
  const live = claimed(afterOneCheckpoint(), 2, claim('run-b', 'latest', 1));
  const late = claim('run-a', 'empty', 1);
  expect(() => claimed(live, 3, late)).toThrow('was faster');
  // Also when it was the very first of the job.
  expect(() => claimed(live, 3, claim('run-a', 'empty', 0))).toThrow('was faster');
});

test('a claim that wakes up late takes nothing from a later attempt of its own run', () => {
  const second = claimed(claimed(undefined, 1, claim('run-1', 'latest', 0)), 2, claim('run-1', 'latest', 1));
  expect(() => claimed(second, 3, claim('run-1', 'latest', 0))).toThrow('was faster');
});

test('a job that an older version prepared, which did not say what it saw, may still claim', () => {
  expect(claimed(afterOneCheckpoint(), 2, claim('run-2', 'latest', null)).run).toBe('run-2');
});

test('the record stays small while nothing that was given up can be deleted', () => {
  let record = afterOneCheckpoint();
  for (let n = 2; n <= 200; n++) {
    record = registered(roundBegun(record, at(n, 1)), entry(n, 1), { id: 'j', retained: 1 });
  }
  const listed = record.dropping.map((e) => e.checkpoint);
  expect(listed).toEqual(Array.from({ length: droppingMax }, (_, i) => 200 - droppingMax + i));
  expect(forgotten(record, { id: 'j', generation: 1 }, record.dropping).dropping).toEqual([]);
  expect(forgotten(record, { id: 'j', generation: 1 }, [entry(1, 1)])).toBe(record);
  const anew = claimed({ ...record, checkpoints: record.dropping }, 2, claim('run-2', 'empty'));
  expect(anew.dropping).toHaveLength(droppingMax);
});

test('a round number is never used twice', () => {
  const record = afterOneCheckpoint();
  expect(() => roundBegun(record, at(1, 1))).not.toThrow();
  const second = roundBegun(record, at(2, 1));
  expect(roundBegun(second, at(2, 1))).toBe(second);
  expect(() => roundBegun(second, at(1, 1))).toThrow('closed');
  expect(() => roundBegun(roundClosed(second, at(2, 1)), at(2, 1))).toThrow('closed');
});

test('rounds of an older attempt cannot register even under the same number', () => {
  const begun = roundBegun(afterOneCheckpoint(), at(2, 1));
  const next = claimed(begun, 2, claim('run-1', 'latest', 1));
  expect(() => registered(next, entry(2, 2), { id: 'j', retained: 2 })).toThrow('closed');
});

test('a generation that is not the newest is refused everywhere', () => {
  const next = claimed(afterOneCheckpoint(), 2, claim('run-2'));
  expect(() => roundBegun(next, at(2, 1))).toThrow('overtaken');
  expect(() => roundClosed(next, at(2, 1))).toThrow('overtaken');
  expect(() => finished(next, { id: 'j', generation: 1 })).toThrow('overtaken');
});
