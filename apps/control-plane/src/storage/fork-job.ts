import type { Dfs } from '@millrace/dfs';
import { MillraceError } from '@millrace/kernel';
import type { CheckpointContents, CheckpointEntry, JobRecord, JobSettings, Json } from '@millrace/proto/control';
import { type Fork, forkCheckpoint, type JobRecords } from '@millrace/ufs';
import type { ControlStorage } from './control-storage.ts';
import { holdersOf } from './holders-of.ts';

export interface ForkJob {
  readonly parent: JobRecord;
  readonly start: CheckpointEntry;
  readonly child: string;
  /** Names this fork of this checkpoint; the same when it is repeated. */
  readonly claim: string;
  /** Of the child's first attempt. */
  readonly settings: JobSettings;
}

export interface ForkDeps {
  readonly dfs: Dfs;
  readonly storage: ControlStorage;
  readonly records: JobRecords;
}

/** Generation of the record that a fork begins with; its first attempt claims the next. */
const generation = 1;

/**
 * Makes a job whose record begins with a checkpoint of another job: pins and holders first, then the checkpoint's
 * description, last the record, from which moment the fork exists. No byte of state is read or written. May be repeated.
 * Transactions of the parent's sinks are not taken over: the parent publishes what belongs to its checkpoint.
 */
export async function forkJob(deps: ForkDeps, wanted: ForkJob): Promise<Pick<Fork, 'files' | 'bytesLinked'>> {
  const { dfs, storage, records } = deps;
  const { parent, start, child, claim } = wanted;
  // Read before anything is pinned: when it has changed by the end, the pins may have been given up meanwhile.
  const before = (await storage.readRecord(child))?.generation ?? 0;
  const contents = await storage.readCheckpoint(start.path);
  const holders = [...new Set(holdersOf(contents))];
  const fork = await forkCheckpoint(dfs, records, { parent: parent.id, child, claim, holders, generation });
  const { checkpoint } = start;
  const path = storage.checkpointPath(child, checkpoint, generation);
  const own: CheckpointContents = {
    ...fork.relocate(contents),
    id: child,
    generation,
    slots: contents.slots.map((slot) => withoutTransactions(fork.relocate(slot))),
  };
  await storage.writeCheckpoint(path, own);
  await storage.hold(own);
  const base: CheckpointEntry = { ...start, generation, path, last: false, bytesPut: 0, bytesLinked: fork.bytesLinked };
  await storage
    .claimRecord(child, claim, (current, next) => {
      const isFree = current === undefined || current.deleted === true;
      const isLate = current?.refusedForks?.includes(claim) === true || (current?.generation ?? 0) !== before;
      if (!isFree || isLate) throw taken(child);
      return forked(wanted, base, next, current);
    })
    .catch(async (error: unknown) => {
      // A repeated call may find that the fork is there, and has gone on.
      if ((await storage.readRecord(child))?.fork?.claim !== claim) throw error;
    });
  return { files: fork.files, bytesLinked: fork.bytesLinked };
}

function forked(
  { parent, start, child, claim, settings }: ForkJob,
  base: CheckpointEntry,
  next: number,
  before?: JobRecord,
): JobRecord {
  return {
    id: child,
    job: settings.job,
    generation: next,
    lineage: claim,
    settings,
    round: Math.max(start.checkpoint, before?.round ?? 0),
    checkpoints: [],
    maxParallelism: parent.maxParallelism,
    finished: false,
    run: '',
    runStart: Math.max(start.checkpoint, before?.round ?? 0),
    closedRound: Math.max(start.checkpoint, before?.round ?? 0),
    dropping: [],
    base,
    fork: { parent: parent.id, checkpoint: start.checkpoint, claim },
    ...(before?.refusedForks === undefined ? {} : { refusedForks: before.refusedForks }),
  };
}

/** Kinds of parts of operator state that name output which its own job has still to publish. */
const transactions: ReadonlySet<unknown> = new Set(['pending', 'transaction']);

function withoutTransactions(slot: Json): Json {
  const { operators, ...rest } = slot as { readonly operators: readonly { readonly list?: readonly Json[] }[] };
  const isTransaction = (part: Json): boolean =>
    typeof part === 'object' && part !== null && transactions.has((part as { readonly kind?: Json }).kind);
  const own = operators.map((operator) =>
    operator.list === undefined
      ? operator
      : { ...operator, list: operator.list.filter((part) => !isTransaction(part)) },
  );
  return { ...rest, operators: own } as Json;
}

function taken(id: string): MillraceError {
  const words = `Field "id": there is a job "${id}", or state of one. Choose another id.`;
  return new MillraceError('job-exists', words, { details: { field: 'id', id } });
}
