import { type KeyGroupRange, MillraceError } from '@millrace/kernel';
import type { SnapshotHandle, TableSpec } from './store.ts';

/** Throws `state-uncovered-range` unless the handles together cover every key group of the table. */
export function checkCoverage(spec: TableSpec, handles: readonly SnapshotHandle[]): void {
  const ranges = handles.map((handle) => handle.keyGroups).toSorted((a, b) => a.start - b.start);
  let next = spec.keyGroups.start;
  for (const range of ranges) {
    if (range.start > next) break;
    next = Math.max(next, range.end + 1);
  }
  if (next > spec.keyGroups.end) return;
  throw new MillraceError(
    'state-uncovered-range',
    `no snapshot of ${spec.operator} holds key group ${next}; wanted ${spec.keyGroups.start} to ${spec.keyGroups.end}`,
    { details: { operator: spec.operator, keyGroup: next } },
  );
}

/** The key groups of `handle` that `range` takes; undefined when they share none. */
export function overlap(a: KeyGroupRange, b: KeyGroupRange): KeyGroupRange | undefined {
  const start = Math.max(a.start, b.start);
  const end = Math.min(a.end, b.end);
  return start > end ? undefined : { start, end };
}
