import type { KeyGroupRange } from '@millrace/kernel';
import { overlap } from '../coverage.ts';
import type { KeyedNotes, SnapshotHandle, TimerNotes } from '../store.ts';
import type { Catalog } from './catalog.ts';
import { checkedCatalog } from './catalog-store.ts';

/** What the handles of a restore say of the part of the table that a subtask takes over. */
export interface RestoredNotes {
  readonly catalog: Catalog;
  readonly eventTimers: TimerBounds;
  readonly processingTimers: TimerBounds;
}

/** For each key group that has timers, a time before which none of them is due. Groups without timers are not in it. */
export type TimerBounds = ReadonlyMap<number, number>;

/** Groups told one by one; of more, only the earliest time is. */
const groupsMax = 512;

export function timerNotes(bounds: TimerBounds): TimerNotes {
  const all = [...bounds].map(([keyGroup, timeMs]) => [keyGroup, finite(timeMs)] as const);
  return all.length <= groupsMax ? all : Math.min(...all.map(([, timeMs]) => timeMs));
}

/** JSON has no infinities: −Infinity, before which nothing is known, and times at the end of time. */
function finite(timeMs: number): number {
  return Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, timeMs));
}

/** Undefined when a handle says nothing: catalog and timers are then read from the table. */
export function notesOf(handles: readonly SnapshotHandle[], keyGroups: KeyGroupRange): RestoredNotes | undefined {
  let first: KeyedNotes | undefined;
  const eventTimers = new Map<number, number>();
  const processingTimers = new Map<number, number>();
  for (const { keyed, keyGroups: theirs } of handles) {
    const shared = overlap(theirs, keyGroups);
    if (shared === undefined) continue;
    if (keyed === undefined) return undefined;
    if (shared.start === keyGroups.start) first = keyed;
    gather(keyed.eventTimers, shared, eventTimers);
    gather(keyed.processingTimers, shared, processingTimers);
  }
  return first && { catalog: checkedCatalog(first.catalog as Catalog), eventTimers, processingTimers };
}

function gather(notes: TimerNotes, { start, end }: KeyGroupRange, into: Map<number, number>): void {
  const all = typeof notes === 'number' ? groupsFrom(start, end, notes) : notes;
  for (const [keyGroup, timeMs] of all) {
    if (keyGroup >= start && keyGroup <= end) into.set(keyGroup, Math.min(timeMs, into.get(keyGroup) ?? timeMs));
  }
}

function groupsFrom(start: number, end: number, timeMs: number): Array<readonly [number, number]> {
  return Array.from({ length: end - start + 1 }, (_, at) => [start + at, timeMs] as const);
}
