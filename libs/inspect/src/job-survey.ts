import type { DfsEntry } from '@millrace/dfs';
import type { JobRecord } from '@millrace/proto/control';
import { fileOrigin, type Holder, Holders, JobNamespace, judgeFile, type Verdict } from '@millrace/ufs';
import { holdersOf } from './checkpoint-parts.ts';
import { checkpointsOf, type StoredCheckpoint, type StoredJobs } from './stored-jobs.ts';

/** A physical file of a job and what keeps it alive. */
export interface SurveyedFile {
  readonly id: string;
  readonly path: string;
  readonly sizeBytes: number;
  readonly modifiedMs: number;
  readonly generation: number | undefined;
  /** Names of the checkpoints and pins that hold it; empty for what a sweep judges. */
  readonly holders: readonly string[];
  /** `held`, or what a sweep would say: `orphan` is what it would delete. */
  readonly verdict: Verdict;
}

/** A set of files under a name: a checkpoint, a savepoint, a fork's pin. What lies elsewhere (a fork's files) counts, too. */
export interface SurveyedHolder {
  readonly name: string;
  readonly kind: 'checkpoint' | 'savepoint' | 'pin';
  readonly files: number;
  readonly logicalBytes: number;
  /** Bytes that no other holder names: freed when this one goes. */
  readonly exclusiveBytes: number;
  /** Bytes in the namespaces of other jobs. */
  readonly foreignBytes: number;
}

export interface JobSurvey {
  readonly job: string;
  /** Undefined when the job has no record any more (its forks may still hold files). */
  readonly record: JobRecord | undefined;
  readonly holders: readonly SurveyedHolder[];
  readonly files: readonly SurveyedFile[];
  /** Objects beside the files: the record's versions, snapshots, checkpoints, holders, origins. */
  readonly objects: number;
  readonly objectBytes: number;
}

export interface SurveyOptions {
  /** Younger files are not called orphans. */
  readonly graceMs: number;
  readonly onProgress?: ((done: string) => void) | undefined;
}

/** The grace period of the control plane's sweeps. */
export const graceMsDefault = 3_600_000;

interface NamedFiles {
  readonly name: string;
  readonly kind: SurveyedHolder['kind'];
  readonly files: Map<string, { readonly sizeBytes: number; readonly home: string | undefined }>;
}

/**
 * What a job keeps and why: reads the record, every holder that it names, and one listing. Rejects when any of it is
 * missing or damaged, because then nobody can say what is an orphan; `verifyJob` says what is wrong.
 */
export async function surveyJob(jobs: StoredJobs, job: string, options: SurveyOptions): Promise<JobSurvey> {
  const namespace = new JobNamespace(job);
  const holders = new Holders(jobs.dfs);
  const record = await jobs.findRecord(job);
  const named: NamedFiles[] = [];
  const liveSnapshots = new Set<string>();
  for (const checkpoint of record === undefined ? [] : checkpointsOf(record)) {
    options.onProgress?.(`job ${job}: holders of ${nameOf(checkpoint)}`);
    const paths = holdersOf(await jobs.contents(checkpoint)).map((holder) => holder.path);
    for (const path of paths) liveSnapshots.add(path);
    const kind = checkpoint.savepoint === undefined ? 'checkpoint' : 'savepoint';
    named.push(namedFiles(nameOf(checkpoint), kind, await Promise.all(paths.map((path) => holders.read(path)))));
  }
  for await (const { path } of jobs.dfs.list(namespace.holdersPrefix)) {
    const holder = await holders.find(path);
    if (holder !== undefined && holder.files.length > 0)
      named.push(namedFiles(pinName(namespace, path, holder), 'pin', [holder]));
  }
  options.onProgress?.(`job ${job}: listing files`);
  const entries = await listJob(jobs, namespace);
  const outlived = await outlivedFiles(holders, namespace, { entries, liveSnapshots, record });
  const counts = holdCounts(named);
  const files = entries.files.map((entry) =>
    surveyed(entry, { named, namespace, record, outlived, nowMs: jobs.clock.nowMs(), ...options }),
  );
  return {
    job,
    record,
    files,
    holders: named.map((one) => summary(one, counts)),
    objects: entries.objects.length,
    objectBytes: entries.objects.reduce((sum, entry) => sum + entry.sizeBytes, 0),
  };
}

export function nameOf({ checkpoint, savepoint }: StoredCheckpoint): string {
  return savepoint === undefined ? `checkpoint ${checkpoint}` : `savepoint ${savepoint} (checkpoint ${checkpoint})`;
}

/** Who a holder in `holders/` belongs to. */
export function pinName(namespace: JobNamespace, path: string, { value }: Holder): string {
  const child = (value as { readonly fork?: { readonly child?: string } } | null)?.fork?.child;
  return child === undefined ? path.slice(namespace.holdersPrefix.length) : `fork ${child}`;
}

function namedFiles(name: string, kind: SurveyedHolder['kind'], holders: readonly Holder[]): NamedFiles {
  const all = holders.flatMap((holder) => holder.files);
  return { name, kind, files: new Map(all.map(({ id, sizeBytes, home }) => [id, { sizeBytes, home }])) };
}

function holdCounts(named: readonly NamedFiles[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const id of named.flatMap(({ files }) => [...files.keys()])) counts.set(id, (counts.get(id) ?? 0) + 1);
  return counts;
}

function summary({ name, kind, files }: NamedFiles, counts: ReadonlyMap<string, number>): SurveyedHolder {
  const sum = (counted: (id: string, home: string | undefined) => boolean): number =>
    [...files].reduce((total, [id, { sizeBytes, home }]) => total + (counted(id, home) ? sizeBytes : 0), 0);
  return {
    name,
    kind,
    files: files.size,
    logicalBytes: sum(() => true),
    exclusiveBytes: sum((id, home) => home === undefined && counts.get(id) === 1),
    foreignBytes: sum((_, home) => home !== undefined),
  };
}

interface JobEntries {
  readonly files: readonly DfsEntry[];
  readonly objects: readonly DfsEntry[];
}

async function listJob(jobs: StoredJobs, namespace: JobNamespace): Promise<JobEntries> {
  const files: DfsEntry[] = [];
  const objects: DfsEntry[] = [];
  const root = namespace.filesPrefix.slice(0, -'files/'.length);
  for await (const entry of jobs.dfs.list(root)) {
    (namespace.fileIdOf(entry.path) === undefined ? objects : files).push(entry);
  }
  return { files, objects };
}

/** Files that rounds before the newest registered one of the running attempt named: proof that they are used no more. */
async function outlivedFiles(
  holders: Holders,
  namespace: JobNamespace,
  {
    entries,
    liveSnapshots,
    record,
  }: { entries: JobEntries; liveSnapshots: ReadonlySet<string>; record: JobRecord | undefined },
): Promise<Set<string>> {
  const settled = settledCheckpoint(record);
  const outlived = new Set<string>();
  if (record === undefined || settled === null) return outlived;
  for (const { path } of entries.objects) {
    const round = path.startsWith(namespace.snapshotsPrefix) ? namespace.roundOf(path) : undefined;
    if (round === undefined || liveSnapshots.has(path)) continue;
    if (round.generation !== record.generation || round.checkpoint >= settled) continue;
    for (const { id } of (await holders.find(path))?.files ?? []) outlived.add(id);
  }
  return outlived;
}

function settledCheckpoint(record: JobRecord | undefined): number | null {
  return record?.checkpoints.findLast((entry) => entry.generation === record.generation)?.checkpoint ?? null;
}

interface Judging extends SurveyOptions {
  readonly named: readonly NamedFiles[];
  readonly namespace: JobNamespace;
  readonly record: JobRecord | undefined;
  readonly outlived: ReadonlySet<string>;
  readonly nowMs: number;
}

function surveyed(entry: DfsEntry, { named, namespace, record, outlived, nowMs, graceMs }: Judging): SurveyedFile {
  const id = namespace.fileIdOf(entry.path) ?? '';
  const holders = named.filter(({ files }) => files.has(id)).map(({ name }) => name);
  const isOver = record === undefined || record.finished;
  const verdict = judgeFile(entry, {
    namespace,
    nowMs,
    graceMs,
    outlived,
    held: new Set(holders.length > 0 ? [id] : []),
    liveGeneration: isOver ? Number.POSITIVE_INFINITY : record.generation,
    settledCheckpoint: settledCheckpoint(record),
  });
  const { path, sizeBytes, modifiedMs } = entry;
  return { id, path, sizeBytes, modifiedMs, generation: fileOrigin(id)?.generation, holders, verdict };
}
