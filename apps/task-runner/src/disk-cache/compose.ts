/** Composition of the disk cache: one for the runner, used by its slots and by the threads that build their tables. */
import {
  type DiskCachePlace,
  type DiskCacheSettings,
  type FileCache,
  openDiskCache,
  openDiskFiles,
  type RunningDiskCache,
} from '@millrace/cache';
import type { Dfs } from '@millrace/dfs';
import { systemClock as clock, systemRandom as random } from '@millrace/kernel';
import type { Telemetry } from '@millrace/telemetry';

export type { DiskCachePlace } from '@millrace/cache';

/** Nothing without settings. */
export async function openRunnerCache(
  settings: DiskCacheSettings | undefined,
  { dfs, telemetry }: { readonly dfs: Dfs; readonly telemetry: Telemetry },
): Promise<RunningDiskCache | undefined> {
  if (settings === undefined) return undefined;
  const fetch = (path: string, offset: number, length: number): Promise<Uint8Array> => dfs.read(path, offset, length);
  return await openDiskCache(settings, { fetch, clock, random, telemetry });
}

/** `scans`: by the thread that builds tables. */
export function openThreadCache(place: DiskCachePlace | undefined, scans: boolean): FileCache | undefined {
  return place === undefined ? undefined : openDiskFiles(place, { clock, random, scans });
}
