import type { Dfs } from '@millrace/dfs';
import { type Clock, MillraceError, type Random } from '@millrace/kernel';
import type { CheckpointContents, CheckpointEntry, JobRecord } from '@millrace/proto/control';
import { FencedObject, JobNamespace } from '@millrace/ufs';

export interface StoredJobsOptions {
  readonly dfs: Dfs;
  readonly clock: Clock;
  readonly random: Random;
}

/** A checkpoint or savepoint that the job's record has. */
export interface StoredCheckpoint extends CheckpointEntry {
  /** Of a savepoint. */
  readonly savepoint?: string;
}

/** What jobs have left on a file system, read and never changed. */
export class StoredJobs {
  readonly dfs: Dfs;
  readonly clock: Clock;
  readonly #random: Random;

  constructor({ dfs, clock, random }: StoredJobsOptions) {
    this.dfs = dfs;
    this.clock = clock;
    this.#random = random;
  }

  /** Ids of all jobs, in order. Lists everything: the file system has no directories to look into. */
  async list(): Promise<string[]> {
    const roots = new Set<string>();
    for await (const { path } of this.dfs.list('')) {
      const end = path.indexOf('/');
      if (end > 0) roots.add(path.slice(0, end));
    }
    return [...roots].map((root) => idOf(root)).filter((id) => id !== undefined);
  }

  /** Rejects with `job-not-found` when there is nothing of the job, naming those that there are. */
  async record(id: string): Promise<JobRecord> {
    const found = await this.findRecord(id);
    if (found !== undefined) return found;
    const known = await this.list();
    const others = known.length === 0 ? 'there is no job at all' : `there are ${known.slice(0, 20).join(', ')}`;
    throw new MillraceError('job-not-found', `No job "${id}" has state at ${this.dfs.uri}: ${others}.`, {
      details: { id, uri: this.dfs.uri },
    });
  }

  async findRecord(id: string): Promise<JobRecord | undefined> {
    const { dfs, clock } = this;
    const directory = new JobNamespace(id).recordDirectory;
    const record = new FencedObject<JobRecord>({ dfs, clock, random: this.#random, directory });
    return (await record.latest())?.value;
  }

  /**
   * The wanted checkpoint of the record: a number, the name of a savepoint, or the newest. Rejects with `bad-argument`,
   * naming those that there are.
   */
  checkpoint(record: JobRecord, wanted?: string): StoredCheckpoint {
    const all = checkpointsOf(record);
    const found =
      wanted === undefined
        ? all.toSorted((a, b) => a.checkpoint - b.checkpoint).at(-1)
        : (all.find((entry) => entry.savepoint === wanted) ?? all.find((entry) => String(entry.checkpoint) === wanted));
    if (found !== undefined) return found;
    const there = all.map((entry) => entry.savepoint ?? String(entry.checkpoint)).join(', ');
    const which = wanted === undefined ? 'has no checkpoint' : `has no checkpoint ${wanted}`;
    throw new MillraceError('bad-argument', `Job "${record.id}" ${which}${there === '' ? '' : `; it has ${there}`}.`);
  }

  /** What the checkpoint consists of. Rejects with `job-record-broken` when its description is missing or unreadable. */
  async contents({ path }: CheckpointEntry): Promise<CheckpointContents> {
    const bytes = await this.dfs.readAll(path);
    if (bytes === undefined) throw broken(path, 'does not exist');
    try {
      const contents = JSON.parse(new TextDecoder().decode(bytes)) as CheckpointContents;
      if (Array.isArray(contents.slots)) return contents;
    } catch (error) {
      throw broken(path, 'is not JSON', error);
    }
    throw broken(path, 'lists no slots');
  }
}

/** Checkpoints, then savepoints and what the run began with that are not among them, each once. */
export function checkpointsOf(record: JobRecord): StoredCheckpoint[] {
  const savepoints = record.savepoints ?? [];
  const names = new Map(savepoints.map((entry) => [entry.path, entry.name]));
  const all = new Map<string, StoredCheckpoint>();
  const base = record.base === undefined ? [] : [record.base];
  for (const entry of [...record.checkpoints, ...savepoints, ...base]) {
    const savepoint = names.get(entry.path);
    all.set(entry.path, savepoint === undefined ? entry : { ...entry, savepoint });
  }
  return [...all.values()];
}

function idOf(root: string): string | undefined {
  try {
    return decodeURIComponent(root);
  } catch {
    return undefined;
  }
}

function broken(path: string, why: string, cause?: unknown): MillraceError {
  return new MillraceError('job-record-broken', `Checkpoint ${path} ${why}.`, { details: { path }, cause });
}
