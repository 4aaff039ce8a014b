import type { Dfs } from '@millrace/dfs';
import { type Clock, isKind, MillraceError, type Random } from '@millrace/kernel';
import type { SnapshotHandle } from '@millrace/state';
import { FencedObject, JobNamespace, type JobRecords } from '@millrace/ufs';

export interface SimCheckpoint {
  readonly checkpoint: number;
  readonly generation: number;
  readonly path: string;
  readonly holders: readonly string[];
}

/** What a control plane would keep of a job. */
export interface SimRecord {
  readonly generation: number;
  /** The fork, or the first claim, that made it. */
  readonly claim: string;
  readonly round: number;
  readonly checkpoints: readonly SimCheckpoint[];
  /** Nothing will ever run again. */
  readonly deleted: boolean;
}

/** What the object at a checkpoint's path holds. */
export interface SimContents {
  readonly handles: readonly SnapshotHandle[];
}

export interface Connection {
  readonly dfs: Dfs;
  readonly clock: Clock;
  readonly random: Random;
}

export function recordOf({ dfs, clock, random }: Connection, job: string): FencedObject<SimRecord> {
  const directory = new JobNamespace(job).recordDirectory;
  return new FencedObject({ dfs, directory, clock, random, backoffMs: 4 });
}

export const emptyRecord: Omit<SimRecord, 'claim'> = { generation: 0, round: 0, checkpoints: [], deleted: false };

/** The records of all jobs, as one process reads them. */
export class SimRecords implements JobRecords {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async find(job: string): Promise<SimRecord | undefined> {
    return (await recordOf(this.#connection, job).latest())?.value;
  }

  async liveHolders(job: string): Promise<readonly string[]> {
    return ((await this.find(job))?.checkpoints ?? []).flatMap(({ holders }) => holders);
  }

  async isAbandoned(child: string, claim: string): Promise<boolean> {
    const record = (await this.find(child)) ?? (await this.create(child, `tombstone of ${claim}`, tombstone));
    return record.claim !== claim || record.deleted;
  }

  /** The first version of a job's record; what is there already when another was faster. */
  async create(job: string, claim: string, value: Omit<SimRecord, 'claim'>): Promise<SimRecord> {
    const record = recordOf(this.#connection, job);
    const change = (current: SimRecord | undefined): SimRecord => {
      if (current !== undefined) throw new MillraceError('bad-argument', `job ${job} exists`);
      return { ...value, claim };
    };
    try {
      return (await record.claim({ claimant: claim, change })).value;
    } catch (error) {
      const found = isKind(error, 'input') ? await this.find(job) : undefined;
      if (found === undefined) throw error;
      return found;
    }
  }
}

const tombstone: Omit<SimRecord, 'claim'> = { ...emptyRecord, deleted: true };
