import type { Dfs } from '@millrace/dfs';
import { MillraceError, Semaphore } from '@millrace/kernel';
import type { FileRef } from '../file-store.ts';
import type { Holder } from '../holder.ts';
import { Holders } from '../holders.ts';
import { JobNamespace } from '../namespace.ts';
import { pinHolder, pinPath } from './fork-pin.ts';
import type { JobRecords } from './job-records.ts';
import { putOrigin } from './origin.ts';
import { relocated } from './relocate.ts';

export interface ForkRequest {
  /** Job whose checkpoint is taken, and the job to be. */
  readonly parent: string;
  readonly child: string;
  /**
   * Names this fork of this checkpoint: the same when it is repeated, never used for another. The child's record has to
   * carry it (see {@link sweepForkPins}).
   */
  readonly claim: string;
  /** Every holder that the checkpoint names, from the parent's record. */
  readonly holders: readonly string[];
  /** The generation that the child's record begins with. */
  readonly generation: number;
}

export interface Fork {
  /** The child's holders, in the order of the request. */
  readonly holders: readonly string[];
  /** What the child now shares: nothing of it was read or copied. */
  readonly files: number;
  readonly bytesLinked: number;
  /** What a description of the parent's checkpoint says, for the child: its holders, and the homes of files. */
  readonly relocate: <T>(json: T) => T;
}

/**
 * Takes a checkpoint of one job as the beginning of another, without a byte of state being read or written. Afterwards
 * neither needs the other: each goes on, drops checkpoints and is deleted as it likes, and a file goes when the last
 * that names it has gone. The caller then writes the child's checkpoint (relocated) and last of all its record: that is
 * the moment from which the fork exists.
 *
 * Crash order: pins in the namespaces of the parent and of its own origins, a look whether the parent still has the
 * checkpoint, the origin (which tells the child's sweeps where its pins are), the child's holders. Before the look nothing
 * is used; after it the pins hold. A crash leaves pins without a child, by which {@link sweepForkPins} finds the rest. May
 * be repeated at any point.
 *
 * Rejects with `ufs-checkpoint-gone` when the parent gave up the checkpoint meanwhile; its pins are swept. (Not released here: a repeated
 * call that looked earlier may be about to succeed on them.)
 */
export async function forkCheckpoint(
  dfs: Dfs,
  records: Pick<JobRecords, 'liveHolders'>,
  request: ForkRequest,
): Promise<Fork> {
  const { parent, child, claim, generation } = request;
  const holders = new Holders(dfs);
  const taken = await readAll(holders, request.holders);
  const files = new Map<string, FileRef & { readonly home: string }>();
  for (const file of taken.flatMap((holder) => holder.files))
    files.set(file.id, { ...file, home: file.home ?? parent });
  const homes = Map.groupBy(files.values(), (file) => file.home);
  // A file that comes home is the child's own again.
  homes.delete(child);

  // In the parent's always, also when there is no file: whoever sweeps there finds what became of the child.
  const pinned = [...new Set([parent, ...homes.keys()])].filter((home) => home !== child);
  for (const home of pinned) {
    const pin = { child, claim, number: 1 };
    await holders.put(pinPath(new JobNamespace(home), pin), pinHolder(pin, homes.get(home) ?? []));
  }
  const now = new Set(await records.liveHolders(parent));
  if (request.holders.some((path) => !now.has(path))) {
    const message = `job ${parent} gave up the checkpoint while ${child} was forked from it`;
    throw new MillraceError('ufs-checkpoint-gone', message, { details: { parent, child } });
  }

  await putOrigin(dfs, new JobNamespace(child), { claim, homes: pinned.sort() });
  const relocation = {
    homes: new Map([...files].flatMap(([id, { home }]) => (home === child ? [] : [[id, home]]))),
    paths: new Map(request.holders.map((path) => [path, pathOfChild(path, request)])),
  };
  for (const [i, path] of request.holders.entries()) {
    const { files: held, value } = relocated(taken[i] as Holder, relocation);
    await holders.put(relocation.paths.get(path) as string, { files: held, value, generation });
  }
  return {
    holders: [...relocation.paths.values()],
    files: files.size,
    bytesLinked: [...files.values()].reduce((sum, file) => sum + file.sizeBytes, 0),
    relocate: (json) => relocated(json, relocation),
  };
}

/** Holders read together. */
const concurrency = 16;

function readAll(holders: Holders, paths: readonly string[]): Promise<Holder[]> {
  const permits = new Semaphore(concurrency);
  return Promise.all(paths.map((path) => permits.run(() => holders.read(path))));
}

/** The same snapshot in the child's namespace, under the generation that its record begins with. */
function pathOfChild(path: string, { parent, child, generation }: ForkRequest): string {
  const { snapshotsPrefix } = new JobNamespace(parent);
  const name = /^(.+)-g\d+$/.exec(path.startsWith(snapshotsPrefix) ? path.slice(snapshotsPrefix.length) : '')?.[1];
  if (name === undefined) throw new MillraceError('bad-argument', `${path} is no snapshot of job ${parent}`);
  return `${new JobNamespace(child).snapshotsPrefix}${name}-g${generation}`;
}
