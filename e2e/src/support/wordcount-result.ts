import { keyOfRecord } from '@millrace/examples/wordcount/job';
import { expect } from 'vitest';
import { readPublishedRows } from './json-lines.ts';

interface Count {
  readonly key: number;
  readonly count: number;
}

/** Each record of each key was counted exactly once: the counts of a key are 1, 2, 3 … */
export function expectExactCounts(directory: string, records: number, keys: number): void {
  const expected = new Uint32Array(keys);
  for (let index = 0; index < records; index++) {
    const key = keyOfRecord(index, keys, true);
    expected[key] = (expected[key] as number) + 1;
  }
  const seen: Uint8Array[] = Array.from(expected, (count) => new Uint8Array(count));
  let lines = 0;
  for (const line of readPublishedRows(directory)) {
    const { key, count } = JSON.parse(line) as Count;
    const counts = seen[key] as Uint8Array;
    counts[count - 1] = (counts[count - 1] ?? 0) + 1;
    lines++;
  }
  expect(lines).toBe(records);
  expect(seen.every((counts) => counts.every((times) => times === 1))).toBe(true);
}
