import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildGraph } from '@millrace/streams';
import { TestRun } from '@millrace/streams/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readOutput } from '../read-output.ts';
import wordcount, { type Count, keyOfRecord } from './wordcount.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'wordcount-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

it('counts every key, with a fill phase before', async () => {
  const graph = buildGraph(wordcount, { keys: 500, records: 3000, fill: true, output: directory });
  await (await TestRun.start(graph, { parallelism: 2 })).finish();
  const counts = new Map<number, number>();
  for (let index = 0; index < 3000; index++) {
    const key = keyOfRecord(index, 500, true);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  expect(counts.size).toBe(500);
  const results = (await readOutput(directory)).map((line) => JSON.parse(line) as Count);
  expect(results).toHaveLength(3000);
  for (const { key, count } of results) counts.set(key, (counts.get(key) as number) - Number(count > 0));
  expect([...counts.values()].every((left) => left === 0)).toBe(true);
});
