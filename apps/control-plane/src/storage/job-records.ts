import { MillraceError } from '@millrace/kernel';
import type { CheckpointEntry, JobRecord } from '@millrace/proto/control';
import type { JobRecords } from '@millrace/ufs';
import { liveCheckpoints } from '../record/transitions.ts';
import type { ControlStorage } from './control-storage.ts';

export interface StoredRecordsOptions {
  readonly storage: Pick<ControlStorage, 'readRecord' | 'claimRecord'>;
  /** The holder objects that a registered checkpoint names. */
  readonly snapshotsOf: (entry: CheckpointEntry) => Promise<readonly string[]>;
}

/** What forks have to know of jobs, read from their records. */
export class StoredRecords implements JobRecords {
  readonly #options: StoredRecordsOptions;

  constructor(options: StoredRecordsOptions) {
    this.#options = options;
  }

  async liveHolders(job: string): Promise<readonly string[]> {
    const record = await this.#options.storage.readRecord(job);
    return record === undefined ? [] : await this.holdersOf(record);
  }

  /** Of this version of the record. Rejects when one of its checkpoints cannot be read. */
  async holdersOf(record: JobRecord): Promise<readonly string[]> {
    return [...new Set((await Promise.all(liveCheckpoints(record).map(this.#options.snapshotsOf))).flat())];
  }

  /**
   * Where the child has no record, or that of a deleted job, the record refuses this fork from here on: it meets that if it
   * was only held up. Where another job has the id, its generation tells the fork that it came too late.
   */
  async isAbandoned(child: string, claim: string): Promise<boolean> {
    const { storage } = this.#options;
    const found = await storage.readRecord(child);
    if (found !== undefined && found.deleted !== true) return found.fork?.claim !== claim;
    if (found?.refusedForks?.includes(claim) === true) return true;
    const refused = await storage.claimRecord(child, `abandoned/${claim}`, (current, generation) => {
      const record = current ?? abandoned(child, generation);
      // Somebody was faster; the next sweep looks again.
      if (record.deleted !== true) throw new MillraceError('job-exists', `Job "${child}" exists.`);
      return { ...record, refusedForks: [...(record.refusedForks ?? []), claim].slice(-refusedMax) };
    });
    return refused.refusedForks?.includes(claim) === true;
  }
}

/** Forks of one deleted id that are remembered. */
const refusedMax = 1000;

function abandoned(id: string, generation: number): JobRecord {
  return {
    id,
    job: id,
    generation,
    round: 0,
    checkpoints: [],
    maxParallelism: 1,
    finished: true,
    deleted: true,
    run: '',
    runStart: 0,
    closedRound: 0,
    dropping: [],
  };
}
