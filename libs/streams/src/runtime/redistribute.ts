import type { OperatorSnapshot } from './slot.ts';

/**
 * The share of subtask `index` of `parallelism` in a redistributed list: items are dealt round robin, so that at the
 * same items and parallelism every subtask gets the same share again.
 */
export function redistribute<T>(items: readonly T[], index: number, parallelism: number): readonly T[] {
  return items.filter((_, i) => i % parallelism === index);
}

/**
 * One subtask's share of an operator's list state: the lists of all old subtasks, concatenated in the order of
 * subtasks, then dealt. At an unchanged parallelism every subtask gets back its own list, in order. Undefined when
 * the checkpoint holds no list of this operator.
 */
export function restoredList(
  parts: readonly OperatorSnapshot[],
  place: { operator: string; subtask: number; parallelism: number },
): readonly unknown[] | undefined {
  const lists = parts
    .filter((part) => part.operator === place.operator && part.list !== undefined)
    .sort((a, b) => a.subtask - b.subtask);
  if (lists.length === 0) return undefined;
  const own = lists.find((part) => part.subtask === place.subtask);
  if (lists.length === place.parallelism && own !== undefined) return own.list;
  const items = lists.flatMap((part) => part.list ?? []);
  return redistribute(items, place.subtask, place.parallelism);
}
