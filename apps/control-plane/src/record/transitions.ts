import { MillraceError } from '@millrace/kernel';
import type { CheckpointEntry, JobRecord, SavepointEntry, StartFrom } from '@millrace/proto/control';
import type { ClaimInput, RoundStep } from '../activities/contract.ts';

/**
 * What may happen to a job's record, as pure functions from one version to the next. The same object returned means:
 * nothing to write. Every change but a claim names the generation that makes it and is refused when a newer one exists.
 */

/** Given-up checkpoints that a record lists; keeps it small while nothing can be deleted. */
export const droppingMax = 64;

/** The next generation. Refused when the newest is not the one that the claim means to take over from. */
export function claimed(record: JobRecord | undefined, generation: number, input: ClaimInput): JobRecord {
  const { settings, run } = input;
  if (record === undefined) {
    return {
      id: settings.id,
      job: settings.job,
      generation,
      lineage: input.claim,
      settings,
      round: 0,
      checkpoints: [],
      maxParallelism: settings.maxParallelism,
      finished: false,
      run,
      runStart: 0,
      closedRound: 0,
      dropping: [],
    };
  }
  // A try that was held up and wakes after others have claimed must not take the job from them.
  if (input.previous !== null && record.generation !== input.previous) {
    throw new MillraceError(
      'job-generation-fenced',
      `Another claim of job "${settings.id}" was faster: generation ${record.generation}, not ${input.previous}.`,
      { details: { id: settings.id, generation: record.generation, run: record.run } },
    );
  }
  const anew = startsAnew(record, input);
  if (anew && typeof settings.from === 'object') return restored(record, generation, input);
  const empty = anew && settings.from === 'empty';
  const { base, deleted: _, ...rest } = record;
  return {
    ...rest,
    ...(base === undefined || anew ? {} : { base }),
    settings,
    job: settings.job,
    generation,
    run,
    finished: false,
    closedRound: record.round,
    maxParallelism: anew ? settings.maxParallelism : record.maxParallelism,
    runStart: anew ? record.round : record.runStart,
    checkpoints: empty ? [] : record.checkpoints,
    dropping: empty ? givenUp(record, liveCheckpoints(record)) : record.dropping,
  };
}

/** A new run that starts from one checkpoint of the job's own. The newer ones stay until retention drops them. */
function restored(record: JobRecord, generation: number, { settings, run }: ClaimInput): JobRecord {
  const { from } = settings;
  const base = findStart(record, from);
  if (base === undefined) throw noCheckpoint(record, from);
  const isClaimed = typeof from === 'object' && 'savepoint' in from && from.claim === true;
  const { savepoints = [], deleted: _, ...rest } = record;
  return {
    ...rest,
    settings,
    job: settings.job,
    generation,
    run,
    finished: false,
    closedRound: record.round,
    runStart: record.round,
    base,
    savepoints: isClaimed ? savepoints.filter((entry) => entry.path !== base.path) : savepoints,
  };
}

/** The checkpoint that is meant; undefined: there is none. */
export function findStart(record: JobRecord, from: StartFrom): CheckpointEntry | undefined {
  const { checkpoints, savepoints = [], base } = record;
  if (from === 'empty') return undefined;
  if (from === 'latest') return checkpoints.at(-1) ?? base;
  const found =
    'savepoint' in from
      ? savepoints.findLast((entry) => entry.name === from.savepoint)
      : liveCheckpoints(record).findLast((entry) => entry.checkpoint === from.checkpoint);
  return found === undefined ? undefined : unnamed(found);
}

export function noCheckpoint(record: JobRecord, from: StartFrom): MillraceError {
  const numbers = liveCheckpoints(record).map((entry) => entry.checkpoint);
  const names = (record.savepoints ?? []).map((entry) => entry.name);
  const wanted =
    typeof from === 'string' ? from : 'savepoint' in from ? `savepoint "${from.savepoint}"` : from.checkpoint;
  const words = `Field "from": job "${record.id}" has no checkpoint ${wanted}. It has the checkpoints ${numbers.join(', ') || '(none)'} and the savepoints ${names.join(', ') || '(none)'}.`;
  return new MillraceError('checkpoint-not-found', words, { details: { field: 'from' } });
}

function unnamed(entry: CheckpointEntry): CheckpointEntry {
  const { name: _, ...rest } = entry as SavepointEntry;
  return rest;
}

/** The user deletes the job: nothing is live any more, and whatever still runs is fenced. */
export function deleted(record: JobRecord, generation: number): JobRecord {
  const { base: _base, savepoints: _savepoints, fork: _fork, ...rest } = record;
  return {
    ...rest,
    generation,
    finished: true,
    deleted: true,
    closedRound: record.round,
    runStart: record.round,
    checkpoints: [],
    dropping: [],
  };
}

/** What is live no more of these; the rest of what is given up is for the sweep. */
function givenUp(record: JobRecord, entries: readonly CheckpointEntry[]): readonly CheckpointEntry[] {
  const kept = new Set((record.savepoints ?? []).map((savepoint) => savepoint.path));
  return bounded([...record.dropping, ...entries.filter((entry) => !kept.has(entry.path))]);
}

/** A new run takes over the state of an unfinished one, unless it was told not to. */
function startsAnew(record: JobRecord, input: ClaimInput): boolean {
  return record.run !== input.run && (input.settings.from !== 'latest' || record.finished);
}

/** The checkpoint that an attempt of the record's run starts from. */
export function newestCheckpoint(record: JobRecord): CheckpointEntry | undefined {
  const newest = record.checkpoints.at(-1);
  return newest !== undefined && newest.checkpoint > record.runStart ? newest : record.base;
}

/** Numbers the round; everything before it that is not registered can no longer be. */
export function roundBegun(record: JobRecord | undefined, step: RoundStep): JobRecord {
  const current = own(record, step);
  if (current.round === step.checkpoint && current.closedRound < step.checkpoint) return current;
  if (current.round >= step.checkpoint) throw closed(step);
  return { ...current, round: step.checkpoint };
}

/** The commit point of a checkpoint. */
export function registered(record: JobRecord | undefined, entry: CheckpointEntry, how: RegisterOptions): JobRecord {
  const current = own(record, { id: how.id, generation: entry.generation });
  if (findCheckpoint(current, entry) !== undefined) return current;
  if (current.round !== entry.checkpoint || current.closedRound >= entry.checkpoint) {
    throw closed({ id: how.id, checkpoint: entry.checkpoint });
  }
  const all = [...current.checkpoints, entry];
  const surplus = all.slice(0, Math.max(0, all.length - Math.max(1, how.retained)));
  const savepoints = withSavepoints(current.savepoints ?? [], entry, how.savepoints ?? []);
  const { base, ...rest } = current;
  const checkpoints = all.slice(surplus.length);
  // From now on the run has a checkpoint of its own to start from.
  const kept = new Set([...savepoints, ...checkpoints].map((one) => one.path));
  const done = base === undefined || surplus.some((one) => one.path === base.path) ? [] : [base];
  const dropped = [...surplus, ...done].filter((one) => !kept.has(one.path));
  return {
    ...rest,
    checkpoints,
    dropping: dropped.length === 0 ? current.dropping : bounded([...current.dropping, ...dropped]),
    ...(savepoints.length === 0 ? {} : { savepoints }),
  };
}

/** A name that is taken (whoever asked has looked before) gets the checkpoint's number behind it. */
function withSavepoints(
  savepoints: readonly SavepointEntry[],
  entry: CheckpointEntry,
  names: readonly string[],
): readonly SavepointEntry[] {
  const all = [...savepoints];
  for (const wanted of names) {
    const name = wanted === '' ? `savepoint-${entry.checkpoint}` : wanted;
    const isTaken = all.some((one) => one.name === name);
    all.push({ ...entry, name: isTaken ? `${name}-${entry.checkpoint}` : name });
  }
  return all;
}

/** Every checkpoint that somebody may still start from. */
export function liveCheckpoints(record: JobRecord): readonly CheckpointEntry[] {
  const { checkpoints, savepoints = [], base } = record;
  const all = [...checkpoints, ...savepoints.map(unnamed), ...(base === undefined ? [] : [base])];
  return [...new Map(all.map((entry) => [entry.path, entry])).values()].sort((a, b) => a.checkpoint - b.checkpoint);
}

/** The user needs this savepoint no longer: what no checkpoint holds any more is given up. */
export function savepointReleased(record: JobRecord, name: string): JobRecord {
  const { savepoints = [], checkpoints, dropping, base } = record;
  const released = savepoints.find((entry) => entry.name === name);
  if (released === undefined) return record;
  const left = savepoints.filter((entry) => entry !== released);
  const isHeld = [...left, ...checkpoints, ...(base === undefined ? [] : [base])].some(
    (entry) => entry.path === released.path,
  );
  return { ...record, savepoints: left, dropping: isHeld ? dropping : bounded([...dropping, unnamed(released)]) };
}

export interface RegisterOptions {
  readonly id: string;
  /** Checkpoints to keep, this one included. */
  readonly retained: number;
  /** Names of savepoints to make of it. */
  readonly savepoints?: readonly string[];
}

/** Given-up checkpoints whose objects are known to be gone need not be listed any more. */
export function forgotten(
  record: JobRecord | undefined,
  owner: { readonly id: string; readonly generation: number },
  gone: readonly CheckpointEntry[],
): JobRecord {
  const current = own(record, owner);
  const paths = new Set(gone.map((e) => e.path));
  const dropping = current.dropping.filter((e) => !paths.has(e.path));
  return dropping.length === current.dropping.length ? current : { ...current, dropping };
}

/** The newest of what was given up. The rest is for the sweep, which needs no list: nothing live names its objects. */
function bounded(dropping: readonly CheckpointEntry[]): readonly CheckpointEntry[] {
  return dropping.slice(-droppingMax);
}

/** The round will never be registered, unless it already is. */
export function roundClosed(record: JobRecord | undefined, step: RoundStep): JobRecord {
  const current = own(record, step);
  if (findCheckpoint(current, step) !== undefined || current.closedRound >= step.checkpoint) return current;
  return { ...current, round: Math.max(current.round, step.checkpoint), closedRound: step.checkpoint };
}

export function finished(
  record: JobRecord | undefined,
  owner: { readonly id: string; readonly generation: number },
): JobRecord {
  const current = own(record, owner);
  return current.finished ? current : { ...current, finished: true };
}

export function findCheckpoint(
  record: JobRecord,
  which: { readonly checkpoint: number; readonly generation: number },
): CheckpointEntry | undefined {
  return record.checkpoints.find((e) => e.checkpoint === which.checkpoint && e.generation === which.generation);
}

function own(record: JobRecord | undefined, owner: { readonly id: string; readonly generation: number }): JobRecord {
  if (record === undefined) {
    throw new MillraceError('job-record-broken', `Job "${owner.id}" has no record in the state directory.`, {
      details: { id: owner.id },
    });
  }
  if (record.generation !== owner.generation) {
    throw new MillraceError(
      'job-generation-fenced',
      `Generation ${owner.generation} of job "${owner.id}" was overtaken by generation ${record.generation}.`,
      { details: { id: owner.id, generation: owner.generation, newest: record.generation } },
    );
  }
  return record;
}

function closed(step: { readonly id: string; readonly checkpoint: number }): MillraceError {
  return new MillraceError('round-closed', `Round ${step.checkpoint} of job "${step.id}" was closed before.`, {
    details: { id: step.id, checkpoint: step.checkpoint },
  });
}
