import { MillraceError } from '@millrace/kernel';
import {
  clipManifest,
  emptyManifest,
  type KeyRange,
  type Manifest,
  type ManifestJson,
  manifestFromJson,
  unionManifests,
} from '@millrace/lsm';
import { checkCoverage, overlap, type SnapshotHandle, type TableSpec } from '@millrace/state';
import type { TraceContext } from '@millrace/telemetry';
import type { HolderStore } from '@millrace/ufs';

export interface RestoreOptions {
  readonly holders: HolderStore;
  readonly store: string;
  readonly parent: TraceContext | undefined;
}

/** The manifest of `spec`'s part of the handles. Reads their holder objects and no file of theirs. */
export async function restoreManifest(
  spec: TableSpec,
  handles: readonly SnapshotHandle[],
  options: RestoreOptions,
): Promise<Manifest> {
  if (handles.length === 0) return emptyManifest;
  checkCoverage(spec, handles);
  const parts = await Promise.all(disjoint(spec, handles).map((part) => readPart(part, options)));
  return unionManifests(parts);
}

interface Part {
  readonly handle: SnapshotHandle;
  readonly start: number;
  readonly end: number;
}

/** Which key groups come from which handle, each from one: where handles overlap they are of the same snapshot. */
function disjoint(spec: TableSpec, handles: readonly SnapshotHandle[]): Part[] {
  const parts: Part[] = [];
  let next = spec.keyGroups.start;
  for (const handle of handles.toSorted((a, b) => a.keyGroups.start - b.keyGroups.start)) {
    const shared = overlap(handle.keyGroups, { start: next, end: spec.keyGroups.end });
    if (shared === undefined) continue;
    parts.push({ handle, ...shared });
    next = shared.end + 1;
  }
  return parts;
}

async function readPart({ handle, start, end }: Part, { holders, store, parent }: RestoreOptions): Promise<Manifest> {
  const path = handle.data['holder'];
  if (handle.store !== store || typeof path !== 'string') {
    const message = `a snapshot of store ${handle.store} cannot be restored by store ${store}`;
    throw new MillraceError('bad-argument', message, { details: { operator: handle.operator } });
  }
  const holder = await holders.read(path, parent);
  return clipManifest(manifestFromJson(holder.value as ManifestJson), rangeOf(start, end));
}

/** Stored keys begin with their key group, two bytes, big-endian. */
function rangeOf(start: number, end: number): KeyRange {
  return { start: bigEndian(start), end: bigEndian(end + 1) };
}

function bigEndian(value: number): Uint8Array {
  return Uint8Array.of(value >>> 8, value & 0xff);
}
