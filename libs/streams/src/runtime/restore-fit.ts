import { MillraceError } from '@millrace/kernel';
import type { JobGraph } from '../graph/job-graph.ts';
import { inFlightBytes } from './in-flight.ts';
import type { OperatorSnapshot, SlotContext } from './slot.ts';

/**
 * Refuses a checkpoint that would be restored in part: with state of operators that the graph lacks, or without that
 * of operators that have state. Throws `state-incompatible`, naming their uids, before anything is opened. A part
 * without table and list holds nothing, so an operator without state may come and go.
 */
export function checkRestoreFits(
  graph: JobGraph,
  { restore, allowDroppedState }: Pick<SlotContext, 'restore' | 'allowDroppedState'>,
): void {
  if (restore === undefined || allowDroppedState === true) return;
  const known = new Set(graph.operators.map(({ uid }) => uid));
  const stored = new Set(restore.map(({ operator }) => operator));
  const holding = new Set(restore.filter(hasState).map(({ operator }) => operator));
  const dropped = [...holding].filter((uid) => !known.has(uid));
  const keeping = graph.operators.filter((node) => node.isSource || node.stateful).map(({ uid }) => uid);
  const fresh = keeping.filter((uid) => !stored.has(uid));
  if (dropped.length === 0 && fresh.length === 0) return;
  const faults = [
    ...(dropped.length === 0 ? [] : [`it holds state of ${listed(dropped)}, which the job does not have`]),
    ...(fresh.length === 0 ? [] : [`it holds nothing of ${listed(fresh)}, which would start empty`]),
  ];
  throw new MillraceError(
    'state-incompatible',
    `the checkpoint does not fit the job: ${faults.join('; ')}. Give each operator the uid that it had, or set allowDroppedState`,
    { details: { dropped: dropped.join(', '), fresh: fresh.join(', ') } },
  );
}

function hasState({ table, list, inFlight }: OperatorSnapshot): boolean {
  return table !== undefined || (list !== undefined && list.length > 0) || inFlightBytes(inFlight) > 0;
}

function listed(uids: readonly string[]): string {
  return uids.map((uid) => `'${uid}'`).join(', ');
}
