import type { Dfs } from '@millrace/dfs';
import { compareBytes, MillraceError } from '@millrace/kernel';
import { corrupt, openEnvelope, sealEnvelope } from '../envelope.ts';
import type { JobNamespace } from '../namespace.ts';

/** In whose namespaces a fork has pins. Written before its record, so that none is ever forgotten. */
export interface Origin {
  readonly claim: string;
  /** Job ids: the parent's, and those of whom it had files. Sorted. */
  readonly homes: readonly string[];
}

const format = 'millrace-origin/1';

/** Written once; the same content again is fine. */
export async function putOrigin(dfs: Dfs, child: JobNamespace, origin: Origin): Promise<void> {
  const path = child.originPath(origin.claim);
  const bytes = sealEnvelope(format, origin);
  if (await dfs.putIfAbsent(path, bytes)) return;
  const found = await dfs.readAll(path);
  if (found !== undefined && compareBytes(found, bytes) === 0) return;
  throw new MillraceError('ufs-holder-taken', `fork ${origin.claim} exists with other content`, { details: { path } });
}

/** Where the files of a job's forks lie, by path; empty for a job that is no fork. */
export async function listOrigins(dfs: Dfs, child: JobNamespace): Promise<Map<string, Origin>> {
  const origins = new Map<string, Origin>();
  for await (const { path } of dfs.list(child.originsPrefix)) {
    const bytes = await dfs.readAll(path);
    if (bytes !== undefined) origins.set(path, decodeOrigin(path, bytes));
  }
  return origins;
}

function decodeOrigin(path: string, bytes: Uint8Array): Origin {
  const body = openEnvelope(format, path, bytes) as Partial<Origin> | null;
  const { claim, homes } = body ?? {};
  if (typeof claim === 'string' && Array.isArray(homes) && homes.every((home) => typeof home === 'string')) {
    return { claim, homes };
  }
  throw corrupt(path, 'it names no origin of a fork');
}
