import type { FileRef } from '../file-store.ts';
import type { Holder } from '../holder.ts';

/**
 * The files that only `dropped` holders name: garbage once those are gone. Each once, in order of first mention. Files
 * of other jobs, which a fork names, are not among them: their pins hold them.
 */
export function filesToFree(dropped: readonly Holder[], live: readonly Holder[]): FileRef[] {
  const held = new Set(live.flatMap((holder) => holder.files.map((file) => file.id)));
  const free = new Map<string, FileRef>();
  for (const holder of dropped) {
    for (const file of holder.files) {
      if (file.home === undefined && !held.has(file.id)) free.set(file.id, file);
    }
  }
  return [...free.values()];
}
