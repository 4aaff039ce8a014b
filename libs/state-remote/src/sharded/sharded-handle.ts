import { MillraceError } from '@millrace/kernel';
import type { SnapshotHandle } from '@millrace/state';

/** Handles of the parts of one snapshot, by name of the instance that has each. */
export type PartHandles = ReadonlyMap<string, SnapshotHandle>;

/** One handle for a table whose key groups several instances serve. Small plain JSON, as each of them is. */
export function joinHandles(parts: PartHandles): SnapshotHandle {
  const all = [...parts.values()];
  const [first] = all as [SnapshotHandle];
  return {
    store: first.store,
    operator: first.operator,
    keyGroups: first.keyGroups,
    data: { instances: Object.fromEntries([...parts].map(([name, { data }]) => [name, data])) },
    holders: all.flatMap(({ holders }) => holders),
    bytesPut: all.reduce((sum, { bytesPut }) => sum + bytesPut, 0),
    bytesLinked: all.reduce((sum, { bytesLinked }) => sum + bytesLinked, 0),
  };
}

/**
 * The instances that a snapshot lies on. Throws `state-service-list` unless all handles lie on the same ones and `known` has
 * them all.
 */
export function instancesOf(handles: readonly SnapshotHandle[], known: readonly string[]): readonly string[] {
  const lists = handles.map(({ data }) => Object.keys((data['instances'] ?? {}) as object).toSorted());
  const [first = []] = lists;
  const text = JSON.stringify(first);
  if (first.length === 0) throw otherList('it was taken from a single state-service', known);
  if (lists.some((list) => JSON.stringify(list) !== text)) throw otherList('its parts lie on different ones', known);
  const missing = first.filter((name) => !known.includes(name));
  if (missing.length > 0) throw otherList(`it lies on ${first.join(', ')}`, known);
  return first;
}

/** The part of a handle that instance `name` made. */
export function partOf(handle: SnapshotHandle, name: string): SnapshotHandle {
  const instances = handle.data['instances'] as Readonly<Record<string, Record<string, unknown>>>;
  return { ...handle, data: instances[name] as Record<string, unknown>, holders: [] };
}

function otherList(reason: string, known: readonly string[]): MillraceError {
  const text = `the snapshot cannot be restored with the state-services ${known.join(', ')}: ${reason}`;
  return new MillraceError('state-service-list', text, { details: { stateService: known.join(',') } });
}
