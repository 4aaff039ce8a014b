import { expect, test } from 'vitest';
import { formatBytes, formatCount, formatTable, formatTime } from './format.ts';

test('figures are written for people', () => {
  expect([0, 999, 1000, 1_540_000, 2e15].map(formatBytes)).toEqual(['0 B', '999 B', '1.0 KB', '1.5 MB', '2000.0 TB']);
  expect(formatCount(1_234_567.8)).toBe('1,234,568');
  expect([null, Number.MAX_SAFE_INTEGER, Date.UTC(2001, 0, 2, 3, 4)].map(formatTime)).toEqual([
    '–',
    'end',
    '2001-01-02 03:04',
  ]);
});

test('a table lines its columns up', () => {
  expect(
    formatTable([
      ['JOB', 'STATE'],
      ['flights', 'running'],
    ]),
  ).toBe('JOB      STATE\nflights  running');
});
