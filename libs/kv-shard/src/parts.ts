import type { KeyGroupRange } from '@millrace/kernel';
import { MillraceError } from '@millrace/kernel';
import { checkCoverage, overlap, type SnapshotHandle, type TableSpec } from '@millrace/state';
import type { EngineDb } from './engine/engine.ts';
import type { Home } from './home.ts';

/** A database that holds some key groups of a table; those of all its parts together are the table. */
export interface Part {
  readonly db: EngineDb;
  readonly directory: string;
  readonly keyGroups: KeyGroupRange;
  /** It may hold entries of other key groups: it came from a snapshot of more, and has not been trimmed since. */
  holdsMore: boolean;
}

/** A part of a snapshot that a table begins with. */
export interface PartSource {
  /** Whose snapshot it is: a fork begins with one of another job. */
  readonly job: string;
  readonly snapshot: string;
  readonly name: string;
  readonly keyGroups: KeyGroupRange;
  readonly holdsMore: boolean;
  readonly entries: number;
}

/** Which parts of which snapshots make up `spec`'s key groups; each key group comes from one. Moves nothing. */
export async function planParts(
  spec: TableSpec,
  handles: readonly SnapshotHandle[],
  home: Home,
): Promise<readonly PartSource[]> {
  checkCoverage(spec, handles);
  const sources: PartSource[] = [];
  let next = spec.keyGroups.start;
  for (const handle of handles.toSorted((a, b) => a.keyGroups.start - b.keyGroups.start)) {
    const wanted = overlap(handle.keyGroups, { start: next, end: spec.keyGroups.end });
    if (wanted === undefined) continue;
    next = wanted.end + 1;
    const { job, id } = snapshotOf(handle);
    const snapshot = await home.readSnapshot(job, id);
    if (snapshot.maxParallelism !== spec.maxParallelism) throw otherParallelism(spec, snapshot.maxParallelism);
    for (const part of snapshot.parts) {
      const keyGroups = overlap(part, wanted);
      if (keyGroups === undefined) continue;
      const isWhole = keyGroups.start === part.start && keyGroups.end === part.end;
      const holdsMore = part.holdsMore || !isWhole;
      sources.push({ job, snapshot: id, name: part.name, keyGroups, holdsMore, entries: snapshot.entries });
    }
  }
  return sources;
}

function snapshotOf(handle: SnapshotHandle): { readonly job: string; readonly id: string } {
  const { job, snapshot: id } = handle.data;
  if (handle.store === 'kv' && typeof id === 'string' && typeof job === 'string') return { job, id };
  const text = `a snapshot of store ${handle.store} cannot be restored by store kv`;
  throw new MillraceError('bad-argument', text, { details: { operator: handle.operator } });
}

function otherParallelism(spec: TableSpec, was: number): MillraceError {
  const text = `the shards of ${spec.operator} are ${was}, one for each key group; maxParallelism is ${spec.maxParallelism} now. It cannot change while there is state: set maxParallelism to ${was}`;
  return new MillraceError('kv-shards-fixed', text, { details: { operator: spec.operator, shards: was } });
}

/** Stored keys begin with their key group, two bytes, big-endian. */
export function keyGroupOfStored(key: Uint8Array): number {
  return ((key[0] as number) << 8) | (key[1] as number);
}

/** First stored key of a key group. */
export function startOf(keyGroup: number): Uint8Array {
  return Uint8Array.of(keyGroup >>> 8, keyGroup & 0xff);
}
