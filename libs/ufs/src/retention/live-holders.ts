import type { Dfs } from '@millrace/dfs';
import { Semaphore } from '@millrace/kernel';
import type { Holder } from '../holder.ts';
import type { Holders } from '../holders.ts';
import type { JobNamespace } from '../namespace.ts';

export interface HolderSource {
  readonly dfs: Dfs;
  readonly namespace: JobNamespace;
  /** {@link Holders}, or a cache in front of it: holders never change. */
  readonly holders: Pick<Holders, 'read' | 'find'>;
}

/** Holders read together. */
const concurrency = 16;

/**
 * Every live holder of a job, by path: those in `paths` (of registered checkpoints, from the job's record) and whatever
 * lies in `holders/` (pins). Complete or a rejection: a named holder that is missing or damaged proves nothing about
 * the files it named, so nothing may be deleted.
 *
 * Call it after the record has been read. A fork writes its pin first and then looks whether the record still has the
 * checkpoint: either its pin is seen here or it sees that it came too late.
 */
export async function readLiveHolders(source: HolderSource, paths: readonly string[]): Promise<Map<string, Holder>> {
  const { dfs, namespace, holders } = source;
  const live = new Map<string, Holder>();
  const permits = new Semaphore(concurrency);
  const named = paths.map((path) => permits.run(async () => live.set(path, await holders.read(path))));
  await Promise.all(named);
  for await (const { path } of dfs.list(namespace.holdersPrefix)) {
    const pin = live.has(path) ? undefined : await holders.find(path);
    // Listed and gone: its owner took the pin away meanwhile.
    if (pin !== undefined) live.set(path, pin);
  }
  return live;
}
