import { q3, q4, q6, q8, q9, q20 } from './auctions.ts';
import { q0, q1, q2, q13, q14 } from './bids.ts';
import type { Site } from './site.ts';
import { q15, q16, q17 } from './statistics.ts';
import { q12, q18, q19 } from './updates.ts';
import { q5, q7, q11 } from './windows.ts';

/** What a query has to tell. */
export interface Expected {
  rows(site: Site): unknown[];
  /** The part of the output that has to be equal; absent: all of it. */
  settled?(rows: readonly unknown[]): unknown[];
}

const exact = (rows: Expected['rows']): Expected => ({ rows });

export const expectedRows = {
  q0: exact(q0),
  q1: exact(q1),
  q2: exact(q2),
  q3: exact(q3),
  q4: exact(q4),
  q5: exact(q5),
  q6: exact(q6),
  q7: exact(q7),
  q8: exact(q8),
  q9: exact(q9),
  q11: exact(q11),
  q12,
  q13: exact(q13),
  q14: exact(q14),
  q15: exact(q15),
  q16: exact(q16),
  q17: exact(q17),
  q18,
  q19,
  q20: exact(q20),
} satisfies Record<string, Expected>;

export type Query = keyof typeof expectedRows;

export const queries = Object.keys(expectedRows) as Query[];

/** The first few differences between a query's output and what it has to be, as multisets; empty when equal. */
export function differences(query: Query, lines: readonly string[], site: Site): string[] {
  const expected: Expected = expectedRows[query];
  const rows = lines.map((line) => JSON.parse(line) as unknown);
  const counts = new Map<string, number>();
  for (const row of expected.rows(site)) add(counts, JSON.stringify(row), 1);
  for (const row of expected.settled?.(rows) ?? rows) add(counts, JSON.stringify(row), -1);
  const found: string[] = [];
  for (const [row, count] of counts) {
    if (count > 0) found.push(`missing ${count} ×: ${row}`);
    if (count < 0) found.push(`too many ${-count} ×: ${row}`);
    if (found.length >= 10) break;
  }
  return found;
}

function add(counts: Map<string, number>, row: string, by: number): void {
  counts.set(row, (counts.get(row) ?? 0) + by);
}
